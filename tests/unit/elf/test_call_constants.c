/* SPDX-License-Identifier: BSD-2-Clause */
/* Instructions as assemblers write them. */
#include "elf/call_constants.h"

#include <cmocka.h>
#include <elf.h>
#include <string.h>

#define AT 0x1000ULL
#define MAX 16U

static struct {
	struct call_value call[MAX][CALL_ARGUMENTS];
	uint64_t address[MAX];
	size_t calls, addresses, read;
} seen;

static void on_call(void *context, const struct call_value argument[CALL_ARGUMENTS])
{
	assert_ptr_equal(context, &seen);
	assert_true(seen.calls < MAX);
	memcpy(seen.call[seen.calls++], argument, sizeof(seen.call[0]));
}

static void on_address(void *context, uint64_t vaddr)
{
	assert_ptr_equal(context, &seen);
	assert_true(seen.addresses < MAX);
	seen.address[seen.addresses++] = vaddr;
}

static void read_code(uint16_t machine, const void *code, size_t size)
{
	const struct call_handlers handlers = {on_call, on_address, &seen};

	memset(&seen, 0, sizeof(seen));
	seen.read = call_constants_read(machine, code, size, AT, &handlers);
}

/* All of it, and each beginning: what is cut is not read. */
static void read_x86(const void *code, size_t size)
{
	for (size_t i = 0; i <= size; i++) {
		read_code(EM_X86_64, code, i);
		assert_true(seen.read <= i);
	}
	assert_int_equal(seen.read, size);
}
#define READ_X86(literal) read_x86(literal, sizeof(literal) - 1)

static void read_arm(const uint32_t *code, size_t count)
{
	read_code(EM_AARCH64, code, count * sizeof(*code));
	assert_int_equal(seen.read, count * sizeof(*code));
}
#define READ_ARM(...)                                                                              \
	read_arm((const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4)

static void assert_argument(size_t number, uint32_t kind, uint64_t value)
{
	assert_int_equal(seen.calls, 1);
	assert_int_equal(seen.call[0][number].kind, kind);
	if (kind != CALL_UNKNOWN)
		assert_int_equal(seen.call[0][number].value, value);
}

#define CALL_NEXT "\xe8\x00\x00\x00\x00"

/* ---- x86-64 ---- */

static void x86__a_call_has_what_compilers_set(void **state)
{
	(void)state;
	READ_X86("\x6a\x00"			/* push $0 */
		 "\x45\x31\xc9"			/* xor %r9d,%r9d */
		 "\x41\xb8\xff\xff\xff\xff"	/* mov $-1,%r8d */
		 "\x48\x8d\x15\x00\x10\x00\x00" /* lea 0x1000(%rip),%rdx */
		 "\x48\x89\xd1"			/* mov %rdx,%rcx */
		 "\x48\x8b\x35\xf0\x00\x00\x00" /* mov 0xf0(%rip),%rsi */
		 "\x48\x89\xdf"			/* mov %rbx,%rdi */
		 "\xe8\x00\x01\x00\x00");
	assert_argument(0, CALL_UNKNOWN, 0);
	assert_argument(1, CALL_SLOT, AT + 28 + 0xf0);
	assert_argument(2, CALL_VALUE, AT + 18 + 0x1000);
	assert_argument(3, CALL_VALUE, AT + 18 + 0x1000);
	assert_argument(4, CALL_VALUE, 0xffffffff);
	assert_int_equal(seen.addresses, 3);
	assert_int_equal(seen.address[2], AT + 36 + 0x100);
}

static void x86__addresses_may_be_immediate(void **state)
{
	(void)state;
	READ_X86("\xbe\x00\x20\x40\x00"			    /* mov $0x402000,%esi */
		 "\x48\xba\x08\x07\x06\x05\x04\x03\x02\x01" /* movabs */
		 "\x48\xc7\xc1\xfe\xff\xff\xff"		    /* mov $-2,%rcx */
		 "\x41\x83\xc8\xff" CALL_NEXT);		    /* or $-1,%r8d */
	assert_argument(1, CALL_VALUE, 0x402000);
	assert_argument(2, CALL_VALUE, 0x0102030405060708);
	assert_argument(3, CALL_VALUE, UINT64_MAX - 1);
	assert_argument(4, CALL_VALUE, 0xffffffff);
	assert_int_equal(seen.address[0], 0x402000);
}

static void x86__a_call_through_memory_is_one(void **state)
{
	(void)state;
	READ_X86("\xbe\x05\x00\x00\x00\xff\x15\x00\x00\x00\x00"); /* call *(%rip) */
	assert_argument(1, CALL_VALUE, 5);
	READ_X86("\xbe\x05\x00\x00\x00\xff\x25\x00\x00\x00\x00"); /* jmp *(%rip) */
	assert_argument(1, CALL_VALUE, 5);
	READ_X86("\xbe\x05\x00\x00\x00\xe9\x10\x00\x00\x00"); /* jmp */
	assert_argument(1, CALL_VALUE, 5);
}

#define SET_RSI "\x48\x8d\x35\x00\x00\x00\x00"

/* What may have changed a register makes it unknown. */
static void x86__what_is_not_known_is_told_so(void **state)
{
	static const struct {
		const char *code;
		size_t size;
	} changes[] = {
#define CODE(literal) {literal, sizeof(literal) - 1}
		CODE("\x5e"),			  /* pop %rsi */
		CODE("\x48\x8b\x36"),		  /* mov (%rsi),%rsi */
		CODE("\x48\x8d\x76\x08"),	  /* lea 8(%rsi),%rsi */
		CODE("\x48\x83\xc6\x08"),	  /* add $8,%rsi */
		CODE("\x48\xff\xc6"),		  /* inc %rsi */
		CODE("\x48\x89\xc6"),		  /* mov %rax,%rsi */
		CODE("\x66\x89\xc6"),		  /* mov %ax,%si */
		CODE("\x66\xbe\x05\x00"),	  /* mov $5,%si */
		CODE("\x40\x88\xc6"),		  /* mov %al,%sil */
		CODE("\x8b\x35\x00\x00\x00\x00"), /* mov (%rip),%esi */
		CODE("\x48\x0f\xaf\xf0"),	  /* imul %rax,%rsi */
		CODE("\x0f\xb6\xf0"),		  /* movzbl %al,%esi */
		CODE("\x48\x0f\x44\xf0"),	  /* cmove %rax,%rsi */
		CODE("\x48\x96"),		  /* xchg %rax,%rsi */
		CODE("\x66\x48\x0f\x7e\xc6"),	  /* movq %xmm0,%rsi */
		CODE("\xc4\xe2\xf8\xf7\xf0"),	  /* bextr %rax,%rax,%rsi */
		CODE("\x74\x00"),		  /* je */
		CODE("\x0f\x84\x00\x00\x00\x00"), /* je */
		CODE("\xc3"),			  /* ret */
		CODE("\xa4"),			  /* movsb */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		char code[64] = SET_RSI;
		size_t size = sizeof(SET_RSI) - 1;

		memcpy(code + size, changes[i].code, changes[i].size);
		size += changes[i].size;
		memcpy(code + size, CALL_NEXT, 5);
		read_code(EM_X86_64, code, size + 5);
		assert_int_equal(seen.read, size + 5);
		assert_argument(1, CALL_UNKNOWN, 0);
	}
	/* So does a function that is called. */
	READ_X86(SET_RSI CALL_NEXT CALL_NEXT);
	assert_int_equal(seen.calls, 2);
	assert_int_equal(seen.call[0][1].kind, CALL_VALUE);
	assert_int_equal(seen.call[1][1].kind, CALL_UNKNOWN);
}

/* What stands between arguments is passed over, byte by byte. */
static void x86__what_changes_none_of_them_is_harmless(void **state)
{
	(void)state;
	READ_X86("\xf3\x0f\x1e\xfa" /* endbr64 */
		 "\x55\x41\x54"	    /* push */
		 SET_RSI "\x90\x0f\x1f\x84\x00\x00\x00\x00\x00"
		 "\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00" /* nopw */
		 "\x0f\x57\xc0\x0f\x11\x04\x24"		    /* xorps; movups %xmm0,(%rsp) */
		 "\xc5\xf8\x57\xc0\xc5\xf8\x11\x44\x24\x10"
		 "\x62\xf1\x7c\x48\x28\x04\x24"	    /* the same of AVX */
		 "\x48\x89\x74\x24\x08"		    /* mov %rsi,8(%rsp) */
		 "\xc7\x44\x24\x10\x05\x00\x00\x00" /* movl $5,0x10(%rsp) */
		 "\x48\xc7\x04\x25\x00\x00\x00\x00\x05\x00\x00\x00"
		 "\x66\xc7\x04\x24\x05\x00" /* movw $5,(%rsp) */
		 "\xc6\x44\x24\x10\x05"	    /* movb */
		 "\x48\x83\xec\x08\x48\x81\xec\x00\x01\x00\x00"
		 "\x48\x85\xf6\x48\x39\xc6\x83\x3d\x00\x00\x00\x00\x05"
		 "\xff\x35\x00\x00\x00\x00\x68\x00\x00\x00\x00" CALL_NEXT);
	assert_argument(1, CALL_VALUE, AT + 14);
}

static void x86__reads_up_to_what_is_no_instruction(void **state)
{
	static const char invalid[][4] = {"\x06", "\x0f\x0a", "\x40\xd4", "\x82"};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		char code[16] = SET_RSI;

		memcpy(code + 7, invalid[i], 3);
		read_code(EM_X86_64, code, 12);
		assert_int_equal(seen.read, 7);
	}
	/* Nor is one of more than 15 bytes. */
	read_code(EM_X86_64, "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90",
		  16);
	assert_int_equal(seen.read, 0);
	read_code(EM_X86_64, "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90", 15);
	assert_int_equal(seen.read, 15);
}

/* ---- aarch64 ---- */

static void arm__a_call_has_what_compilers_set(void **state)
{
	(void)state;
	READ_ARM(0xa9bf7bfd,  /* stp x29, x30, [sp, #-16]! */
		 0xd0000002,  /* adrp x2, 0x3000 */
		 0x91004042,  /* add x2, x2, #16 */
		 0xaa0203e3,  /* mov x3, x2 */
		 0xb0000001,  /* adrp x1, 0x2000 */
		 0xf947fc21,  /* ldr x1, [x1, #0xff8] */
		 0xf90003ff,  /* str xzr, [sp] */
		 0x12800004,  /* mov w4, #-1 */
		 0xaa1303e0,  /* mov x0, x19 */
		 0x94000040); /* bl */
	assert_argument(0, CALL_UNKNOWN, 0);
	assert_argument(1, CALL_SLOT, 0x2000 + 0xff8);
	assert_argument(2, CALL_VALUE, 0x3010);
	assert_argument(3, CALL_VALUE, 0x3010);
	assert_argument(4, CALL_VALUE, 0xffffffff);
	assert_int_equal(seen.addresses, 2);
	assert_int_equal(seen.address[0], 0x3010);
	assert_int_equal(seen.address[1], AT + 9 * 4 + 0x100);
	READ_ARM(0x52800021, 0xd63f0200); /* mov w1, #1; blr x16 */
	assert_argument(1, CALL_VALUE, 1);
	READ_ARM(0x52800021, 0x14000010); /* b */
	assert_argument(1, CALL_VALUE, 1);
	READ_ARM(0x10ffffe1, 0x94000000); /* adr x1, . - 4 */
	assert_argument(1, CALL_VALUE, AT - 4);
}

static void arm__what_is_not_known_is_told_so(void **state)
{
	static const uint32_t change[] = {
		0xf9400021, /* ldr x1, [x1]: of a number that is no address of ours */
		0xf8408421, /* ldr x1, [x1], #8 */
		0xa94007e0, /* ldp x0, x1, [sp] */
		0x8b020021, /* add x1, x1, x2 */
		0x910003e1, /* add x1, sp, #0 */
		0x54000040, /* b.eq */
		0xd65f03c0, /* ret */
		0x9e660001, /* fmov x1, d0 */
	};

	(void)state;
	for (size_t i = 1; i < sizeof(change) / sizeof(change[0]); i++) {
		READ_ARM(0x52800021, change[i], 0x94000010);
		assert_argument(1, CALL_UNKNOWN, 0);
	}
	READ_ARM(0x52800021, change[0], 0x94000010);
	assert_argument(1, CALL_SLOT, 1);
	READ_ARM(0x52800021, 0x94000010, 0x94000010);
	assert_int_equal(seen.call[1][1].kind, CALL_UNKNOWN);
}

static void other_machines__tell_nothing(void **state)
{
	(void)state;
	read_code(EM_RISCV, CALL_NEXT, 5);
	assert_int_equal(seen.read, 0);
	read_code(EM_AARCH64, CALL_NEXT, 3);
	assert_int_equal(seen.read, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(x86__a_call_has_what_compilers_set),
		cmocka_unit_test(x86__addresses_may_be_immediate),
		cmocka_unit_test(x86__a_call_through_memory_is_one),
		cmocka_unit_test(x86__what_is_not_known_is_told_so),
		cmocka_unit_test(x86__what_changes_none_of_them_is_harmless),
		cmocka_unit_test(x86__reads_up_to_what_is_no_instruction),
		cmocka_unit_test(arm__a_call_has_what_compilers_set),
		cmocka_unit_test(arm__what_is_not_known_is_told_so),
		cmocka_unit_test(other_machines__tell_nothing),
	};

	return cmocka_run_group_tests_name("elf/call_constants", tests, NULL, NULL);
}
