/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is /dev/kvm what it says? Opening it proves little: some sandboxes offer a KVM that
 * interprets the guest's kernel mode, thousands of times slower than the processor.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/mem.h"
#include "harness/doctor.h"

/* A million turns take a processor about a millisecond, interpreters seconds. */
#define PROBE_LIMIT_MS 500
#define PROBE_TRIES 3 /* a busy host may miss the limit once */

enum { /* guest-physical layout, identity-mapped by one 2 MiB page */
	GUEST_BYTES = 1 << 20,
	PML4 = 0x1000,
	PDPT = 0x2000,
	PAGE_DIR = 0x3000,
	GDT = 0x5000,
	STACK_TOP = 0x7000,
	CODE = 0x8000,
	DONE_PORT = 0x80,
};

enum step { /* the probing child's exit codes */
	STEP_DONE = 0,
	STEP_OPEN_DENIED,
	STEP_OPEN_MISSING,
	STEP_OPEN,
	STEP_VERSION,
	STEP_VM,
	STEP_MEMORY,
	STEP_CPU,
	STEP_REGISTERS,
	STEP_RUN,
	STEP_EXIT,
};

static const uint8_t code[] = {
	0xb9, 0x40, 0x42, 0x0f, 0x00, /* mov ecx, 1000000 */
	0xff, 0xc9,		      /* 1: dec ecx */
	0x75, 0xfc,		      /* jnz 1b */
	0x0f, 0x20, 0xd8,	      /* mov rax, cr3: privileged, as a kernel does it */
	0x0f, 0x22, 0xd8,	      /* mov cr3, rax */
	0xe6, DONE_PORT,	      /* out DONE_PORT, al */
	0xf4,			      /* hlt */
};

static void put64(uint8_t *memory, size_t at, uint64_t value)
{
	memcpy(memory + at, &value, sizeof(value));
}

static void fill_memory(uint8_t *memory)
{
	put64(memory, PML4, PDPT | 3);     /* present, writable */
	put64(memory, PDPT, PAGE_DIR | 3);
	put64(memory, PAGE_DIR, 0x83);     /* a large page at 0 */
	put64(memory, GDT + 8, 0x00af9b000000ffffull);  /* 64-bit code */
	put64(memory, GDT + 16, 0x00cf93000000ffffull); /* data */
	memcpy(memory + CODE, code, sizeof(code));
}

/* Without the host's CPUID a vCPU may refuse long mode. */
static bool set_cpuid(int kvm, int cpu)
{
	enum { ENTRIES = 256 };
	struct kvm_cpuid2 *id = calloc(1, sizeof(*id) + ENTRIES * sizeof(id->entries[0]));
	bool ok;

	if (!id)
		return false;
	id->nent = ENTRIES;
	ok = ioctl(kvm, KVM_GET_SUPPORTED_CPUID, id) == 0 && ioctl(cpu, KVM_SET_CPUID2, id) == 0;
	free(id);
	return ok;
}

static bool set_registers(int cpu)
{
	struct kvm_segment cs = { .limit = ~0u, .selector = 8, .type = 11, .present = 1,
				  .s = 1, .l = 1, .g = 1 };
	struct kvm_segment ds = { .limit = ~0u, .selector = 16, .type = 3, .present = 1,
				  .s = 1, .db = 1, .g = 1 };
	struct kvm_regs regs = { .rip = CODE, .rsp = STACK_TOP, .rflags = 2 };
	struct kvm_sregs s;

	if (ioctl(cpu, KVM_GET_SREGS, &s))
		return false;
	s.cr0 = 0x80050033; /* PG WP NE ET MP PE AM */
	s.cr3 = PML4;
	s.cr4 = 0x20;       /* PAE */
	s.efer = 0x500;     /* LME LMA */
	s.cs = cs;
	s.ds = s.es = s.fs = s.gs = s.ss = ds;
	s.gdt.base = GDT;
	s.gdt.limit = 23;
	return ioctl(cpu, KVM_SET_SREGS, &s) == 0 && ioctl(cpu, KVM_SET_REGS, &regs) == 0;
}

static enum step run_guest(int kvm, int cpu)
{
	int size = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	struct kvm_run *run = MAP_FAILED;

	if (size >= (int)sizeof(*run))
		run = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0);
	if (run == MAP_FAILED)
		return STEP_CPU;
	if (ioctl(cpu, KVM_RUN, 0))
		return STEP_RUN;
	return run->exit_reason == KVM_EXIT_IO && run->io.port == DONE_PORT ? STEP_DONE :
									       STEP_EXIT;
}

/* In a child: SIGALRM's default action is the time limit, and the kernel tidies up. */
static enum step probe(void)
{
	struct itimerval limit = { .it_value = { .tv_usec = PROBE_LIMIT_MS * 1000 } };
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (kvm < 0)
		return errno == EACCES || errno == EPERM ? STEP_OPEN_DENIED :
		       errno == ENOENT			 ? STEP_OPEN_MISSING :
							   STEP_OPEN;
	if (ioctl(kvm, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
		return STEP_VERSION;
	int vm = ioctl(kvm, KVM_CREATE_VM, 0);
	if (vm < 0)
		return STEP_VM;
	(void)ioctl(vm, KVM_SET_TSS_ADDR, 0xfffbd000ul); /* older Intel processors need it */
	uint8_t *memory = mmap(NULL, GUEST_BYTES, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return STEP_MEMORY;
	struct kvm_userspace_memory_region region = { .memory_size = GUEST_BYTES,
						      .userspace_addr = (uintptr_t)memory };
	fill_memory(memory);
	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region))
		return STEP_MEMORY;
	int cpu = ioctl(vm, KVM_CREATE_VCPU, 0);
	if (cpu < 0)
		return STEP_CPU;
	if (!set_cpuid(kvm, cpu) || !set_registers(cpu))
		return STEP_REGISTERS;
	setitimer(ITIMER_REAL, &limit, NULL); /* around the guest only: opening may be slow */
	return run_guest(kvm, cpu);
}

/* @return the child's status, or -1 */
static int probe_in_child(void)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return -1;
	if (pid == 0) {
		sigemptyset(&none);
		sigaction(SIGALRM, &sa, NULL);
		sigprocmask(SIG_SETMASK, &none, NULL);
		_exit((int)probe());
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

static const char *reason_of(int status)
{
	if (status < 0)
		return "it could not be tried";
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return "it interprets the guest's code instead of running it on the processor";
	if (WIFSIGNALED(status))
		return "trying it crashed";
	switch ((enum step)WEXITSTATUS(status)) {
	case STEP_DONE:
		return NULL;
	case STEP_OPEN_DENIED:
		return "this user may not open /dev/kvm";
	case STEP_OPEN_MISSING:
		return "there is no /dev/kvm";
	case STEP_OPEN:
		return "/dev/kvm cannot be opened";
	case STEP_VERSION:
		return "/dev/kvm speaks another protocol";
	case STEP_VM:
		return "it cannot create a virtual machine";
	case STEP_MEMORY:
		return "it does not take guest memory";
	case STEP_CPU:
		return "it cannot create a virtual processor";
	case STEP_REGISTERS:
		return "its processor cannot enter long mode";
	case STEP_RUN:
		return "running a guest fails";
	case STEP_EXIT:
		return "a guest in long mode does not run as it should";
	}
	return "it could not be tried";
}

bool kb_doctor_kvm_usable(char **ret_why)
{
	const char *why = NULL;
	int status = -1;

	for (int i = 0; i < PROBE_TRIES; i++) {
		status = probe_in_child();
		why = reason_of(status);
		if (!why || !WIFSIGNALED(status))
			break; /* only the time limit deserves another try */
	}
	if (why)
		*ret_why = kb_strdup(why);
	return why == NULL;
}
