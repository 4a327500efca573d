// System calls without a C library, and the three pieces of assembly per architecture: entry, clone on a new stack, and a jump
// back to a saved frame. Results are the kernel's: negative is -errno.
#pragma once
#include <asm/unistd.h>
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 i32;
typedef __s64 i64;
typedef unsigned long word;

#if defined(__x86_64__)

static inline long sys6(long n, long a, long b, long c, long d, long e, long f) {
  long ret;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  __asm__ volatile("syscall" : "=a"(ret) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return ret;
}

// spawn_call is a clone or clone3 whose child starts on another stack, on top of which lie a function and its argument (see
// spawn_stack); it runs the function and exits with its result. The call returns in the parent only.
__asm__(".text\n"
        ".globl spawn_call\n.hidden spawn_call\n.type spawn_call,@function\n"
        "spawn_call:\n"
        "  mov %rdi, %rax\n  mov %rsi, %rdi\n  mov %rdx, %rsi\n  mov %rcx, %rdx\n  mov %r8, %r10\n  mov %r9, %r8\n"
        "  syscall\n"
        "  test %rax, %rax\n"
        "  jz 1f\n"
        "  ret\n"
        "1: xor %ebp, %ebp\n"
        "  pop %rax\n"
        "  pop %rdi\n"
        "  call *%rax\n"
        "  mov %eax, %edi\n"
        "  mov $60, %eax\n"
        "  syscall\n"
        "  hlt\n"
        ".size spawn_call, .-spawn_call\n");

struct frame {
  word reg[8]; // rbx rbp r12 r13 r14 r15 rsp rip
};
// frame_save returns 0, and once more, 1, when frame_jump is called in a copy of this address space.
__asm__(".globl frame_save\n.hidden frame_save\n.type frame_save,@function\n"
        "frame_save:\n"
        "  mov %rbx, 0(%rdi)\n  mov %rbp, 8(%rdi)\n  mov %r12, 16(%rdi)\n  mov %r13, 24(%rdi)\n"
        "  mov %r14, 32(%rdi)\n  mov %r15, 40(%rdi)\n  lea 8(%rsp), %rax\n  mov %rax, 48(%rdi)\n"
        "  mov (%rsp), %rax\n  mov %rax, 56(%rdi)\n  xor %eax, %eax\n  ret\n"
        ".size frame_save, .-frame_save\n"
        ".globl frame_jump\n.hidden frame_jump\n.type frame_jump,@function\n"
        "frame_jump:\n"
        "  mov 0(%rdi), %rbx\n  mov 8(%rdi), %rbp\n  mov 16(%rdi), %r12\n  mov 24(%rdi), %r13\n"
        "  mov 32(%rdi), %r14\n  mov 40(%rdi), %r15\n  mov 48(%rdi), %rsp\n  mov $1, %eax\n  jmp *56(%rdi)\n"
        ".size frame_jump, .-frame_jump\n");

#ifndef WARM
__asm__(".globl _start\n_start:\n  xor %ebp, %ebp\n  mov %rsp, %rdi\n  and $-16, %rsp\n  call helper_main\n  hlt\n");
#endif

// clone(2) has its last two arguments in another order on every architecture.
#define CLONE_ARGS(flags, stack, ptid, ctid) (flags), (stack), (ptid), (ctid), 0

#elif defined(__aarch64__)

static inline long sys6(long n, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = n;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}

__asm__(".text\n"
        ".globl spawn_call\n.hidden spawn_call\n.type spawn_call,%function\n"
        "spawn_call:\n"
        "  mov x8, x0\n  mov x0, x1\n  mov x1, x2\n  mov x2, x3\n  mov x3, x4\n  mov x4, x5\n"
        "  svc 0\n"
        "  cbz x0, 1f\n"
        "  ret\n"
        "1: mov x29, #0\n  mov x30, #0\n"
        "  ldp x1, x0, [sp], #16\n"
        "  blr x1\n"
        "  mov x8, #93\n"
        "  svc 0\n"
        "  brk 0\n"
        ".size spawn_call, .-spawn_call\n");

struct frame {
  word reg[13]; // x19..x30, sp
};
__asm__(".globl frame_save\n.hidden frame_save\n.type frame_save,%function\n"
        "frame_save:\n"
        "  stp x19, x20, [x0, #0]\n  stp x21, x22, [x0, #16]\n  stp x23, x24, [x0, #32]\n  stp x25, x26, [x0, #48]\n"
        "  stp x27, x28, [x0, #64]\n  stp x29, x30, [x0, #80]\n  mov x9, sp\n  str x9, [x0, #96]\n  mov x0, #0\n  ret\n"
        ".size frame_save, .-frame_save\n"
        ".globl frame_jump\n.hidden frame_jump\n.type frame_jump,%function\n"
        "frame_jump:\n"
        "  ldp x19, x20, [x0, #0]\n  ldp x21, x22, [x0, #16]\n  ldp x23, x24, [x0, #32]\n  ldp x25, x26, [x0, #48]\n"
        "  ldp x27, x28, [x0, #64]\n  ldp x29, x30, [x0, #80]\n  ldr x9, [x0, #96]\n  mov sp, x9\n  mov x0, #1\n  ret\n"
        ".size frame_jump, .-frame_jump\n");

#ifndef WARM
__asm__(".globl _start\n_start:\n  mov x29, #0\n  mov x30, #0\n  mov x0, sp\n  and x9, x0, #-16\n  mov sp, x9\n  bl helper_main\n  brk 0\n");
#endif

#define CLONE_ARGS(flags, stack, ptid, ctid) (flags), (stack), (ptid), 0, (ctid)

#else
#error "the sandbox's helper is written for x86-64 and aarch64"
#endif

long spawn_call(long nr, long a0, long a1, long a2, long a3, long a4) __attribute__((visibility("hidden")));
int frame_save(struct frame *f) __attribute__((visibility("hidden"), returns_twice));
void frame_jump(struct frame *f) __attribute__((visibility("hidden"), noreturn));

// spawn_stack lays fn and arg on top of a stack that ends at end (a multiple of 16) and gives the child's stack pointer.
static inline void *spawn_stack(void *end, int (*fn)(void *), void *arg) {
  void **top = end;
  top[-2] = (void *)fn;
  top[-1] = arg;
  return top - 2;
}

#define SYS_PICK(_0, _1, _2, _3, _4, _5, _6, name, ...) name
#define sys(...) SYS_PICK(__VA_ARGS__, S6, S5, S4, S3, S2, S1, S0)(__VA_ARGS__)
#define S0(n) sys6(__NR_##n, 0, 0, 0, 0, 0, 0)
#define S1(n, a) sys6(__NR_##n, (long)(a), 0, 0, 0, 0, 0)
#define S2(n, a, b) sys6(__NR_##n, (long)(a), (long)(b), 0, 0, 0, 0)
#define S3(n, a, b, c) sys6(__NR_##n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define S4(n, a, b, c, d) sys6(__NR_##n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define S5(n, a, b, c, d, e) sys6(__NR_##n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define S6(n, a, b, c, d, e, f) sys6(__NR_##n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

// The compiler may call these by itself.
void *memset(void *p, int c, word n) {
  for (u8 *q = p; n--;) *q++ = (u8)c;
  return p;
}
void *memcpy(void *to, const void *from, word n) {
  const u8 *f = from;
  for (u8 *t = to; n--;) *t++ = *f++;
  return to;
}
void *memmove(void *to, const void *from, word n) {
  u8 *t = to;
  const u8 *f = from;
  if (t < f)
    while (n--) *t++ = *f++;
  else
    while (n--) t[n] = f[n];
  return to;
}
int memcmp(const void *a, const void *b, word n) {
  const u8 *x = a, *y = b;
  for (; n--; x++, y++)
    if (*x != *y) return *x - *y;
  return 0;
}
