# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Function names of one, two and four bytes a character."""


def größe(mark, burn):
    mark()
    return burn(600)


def размер(mark, burn):
    mark()
    return burn(600)


def 大小𠀀(mark, burn):
    mark()
    return burn(600)


def call_all(mark, burn):
    mark()
    größe(mark, burn)
    размер(mark, burn)
    大小𠀀(mark, burn)
