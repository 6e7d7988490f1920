# SPDX-License-Identifier: BSD-2-Clause
# What the build and the tests need, by Debian package name.
