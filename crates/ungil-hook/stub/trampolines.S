/* The functions that the stub stands in for. Each jumps to where `stand_ins` says, with whatever it
 * was called with and on the caller's own stack: `vfork` returns twice. At first that is a piece of
 * code which asks `first_called`, in stub.c, where to go. */

#include "stand_ins.h"

    .text

#if defined(__x86_64__)

#define TRAMPOLINE(index, name, none)                                                            \
    .globl name;                                                                                 \
    .type name, @function;                                                                       \
    .p2align 4;                                                                                  \
name:                                                                                            \
    endbr64;                                                                                     \
    jmp *(stand_ins + 8 * index)(%rip);                                                          \
    .size name, . - name;                                                                        \
first_##name:                                                                                    \
    endbr64;                                                                                     \
    pushq $index;                                                                                \
    jmp first;

STAND_INS(TRAMPOLINE)

first:
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    movl 48(%rsp), %edi
    call first_called
    popq %r9
    popq %r8
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    addq $8, %rsp
    jmp *%rax

#elif defined(__aarch64__)

/* `hint 34` is `bti c`, the landing pad, where processors know it. */
#define TRAMPOLINE(index, name, none)                                                            \
    .globl name;                                                                                 \
    .type name, %function;                                                                       \
    .p2align 4;                                                                                  \
name:                                                                                            \
    hint 34;                                                                                      \
    adrp x16, stand_ins + 8 * index;                                                             \
    ldr x16, [x16, :lo12:stand_ins + 8 * index];                                                \
    br x16;                                                                                      \
    .size name, . - name;                                                                        \
first_##name:                                                                                    \
    hint 34;                                                                                      \
    mov w16, index;                                                                             \
    b first;

STAND_INS(TRAMPOLINE)

first:
    stp x29, x30, [sp, #-80]!
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    mov w0, w16
    bl first_called
    mov x16, x0
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp x29, x30, [sp], #80
    br x16

#else
#error "ungil knows x86-64 and aarch64"
#endif

#define FIRST(index, name, none) .quad first_##name;

    .data
    .p2align 7
    .globl stand_ins
    .hidden stand_ins
stand_ins:
    STAND_INS(FIRST)

    .section .data.rel.ro, "aw", %progbits
    .p2align 3
    .globl first_calls
    .hidden first_calls
first_calls:
    STAND_INS(FIRST)

    .section .note.GNU-stack, "", %progbits
