"""How kernels of all ages and architectures tell of trouble, line by line as they do it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kduel.guest.console import read_console
from kduel.guest.diagnosis import MOST_LINES, diagnose, findings, findings_in, searched_lines

HERE = Path(__file__).parent

OOPSES = """
divide error: 0000 [#1] PREEMPT SMP NOPTI
Oops: divide error: 0000 [#1] PREEMPT SMP KASAN PTI
divide error: 0000
stack segment: 0000 [#1] PREEMPT SMP NOPTI
Oops: stack segment: 0000 [#1] SMP
int3: 0000 [#1] SMP PTI
double fault: 0000 [#1] SMP
invalid opcode: 0000 [#1] SMP
invalid operand: 0000 [#1]
general protection fault: 0000 [#1] SMP
general protection fault: 0000
general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1] PREEMPT SMP
Oops: general protection fault, maybe for address 0x8: 0000 [#1] SMP
traps: PANIC: double fault, error_code: 0x0
BUG: unable to handle kernel NULL pointer dereference at 0000000000000008
BUG: unable to handle page fault for address: ffffc90000b3fff8
BUG: unable to handle kernel paging request at ffff88007bd671c0
BUG: kernel NULL pointer dereference, address: 0000000000000010
BUG: TASK stack guard page was hit at 00000000b1b6ff2c (stack is 0000000023b5b4ae..00000000f2d4ac4f)
Unable to handle kernel NULL pointer dereference at virtual address 00000000
Unable to handle kernel paging request at virtual address ffff7fbffc000000
Unable to handle kernel access to user memory outside uaccess routines at virtual address 0000000000000008
Unable to handle kernel pointer dereference in virtual kernel address space
CPU 0 Unable to handle kernel paging request at virtual address 00000000, epc == 80104e2c, ra == 80104e10
BUG: Unable to handle kernel data access on read at 0xc00000000bad0000
Oops: 0002 [#1] SMP
Oops: 0000
Oops: 0011 [#1] SMP
Internal error: Oops: 96000004 [#1] PREEMPT SMP
Internal error: Oops: 817 [#1] ARM
Internal error: Oops - BUG: 0 [#1] SMP
Internal error: Oops - Undefined instruction: 0000000002000000 [#1] SMP
Internal error: synchronous external abort: 96000210 [#1] PREEMPT SMP
Oops [#1]
Oops - illegal instruction [#1]
Oops - load access fault [#1]
Oops: Exception in kernel mode, sig: 5 [#1]
Oops: Kernel access of bad area, sig: 11 [#1]
Oops: 0004 ilc:2 [#1] SMP
illegal operation: 0001 ilc:1 [#1] SMP
Oops[#1]:
Kernel bug detected[#1]:
Reserved instruction in kernel code[#1]:
swapper(1): Oops 0
kernel BUG at mm/slub.c:4063!
Kernel BUG at kernel/fork.c:1200
""".strip().splitlines()
PANICS = """
Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)
Kernel panic: VFS: Unable to mount root fs on 08:03
Kernel panic: Attempted to kill init!
Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b
Kernel panic - not syncing: No working init found.  Try passing init= option to kernel.
""".strip().splitlines()
VOID = {
    "hard-lockup": """
NMI watchdog: Watchdog detected hard LOCKUP on cpu 2
watchdog: Watchdog detected hard LOCKUP on cpu 3
watchdog: CPU28: Watchdog detected hard LOCKUP on cpu 28
watchdog: CPU 3 self-detected hard LOCKUP @ plpar_hcall_norets+0x1c/0x28
Watchdog CPU:0 Hard LOCKUP
NMI Watchdog detected LOCKUP on CPU1, eip c011a747, registers:
NMI Watchdog detected LOCKUP on CPU 3
NMI watchdog detected lockup on CPU#1 (50000/50000)
Kernel panic - not syncing: Watchdog detected hard LOCKUP on cpu 13
Kernel panic - not syncing: Hard LOCKUP
""",
    "soft-lockup": """
BUG: soft lockup detected on CPU#0!
BUG: soft lockup - CPU#0 stuck for 61s! [swapper:1]
NMI watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [kworker/1:2:98]
watchdog: BUG: soft lockup - CPU#0 stuck for 71s! [insmod:141]
Kernel panic - not syncing: softlockup: hung tasks
INFO: rcu_sched self-detected stall on CPU { 0}  (t=5250 jiffies g=4294967271 c=4294967270 q=16)
INFO: rcu_sched detected stalls on CPUs/tasks:
INFO: rcu_preempt detected stalls on CPUs/tasks: { 1} (detected by 0, t=5252 jiffies, g=133525, c=133524, q=98)
INFO: rcu_sched_state detected stall on CPU 0 (t=105060 jiffies)
INFO: rcu_bh self-detected stall on CPU
rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: { 0-... } 6 jiffies s: 85 root: 0x1/.
rcu: INFO: rcu_tasks detected stalls on tasks:
RCU detected CPU 0 stall (t=4294904632/2500 jiffies)
rcu_sched kthread starved for 5252 jiffies! g133525 c133524 f0x0 RCU_GP_WAIT_FQS(3) ->state=0x402 ->cpu=3
Kernel panic - not syncing: RCU Stall
""",
    "workqueue-lockup": """
BUG: workqueue lockup - pool cpus=0-1 flags=0x4 nice=0 stuck for 2530s!
BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 59s!
""",
    "hang": """
INFO: task jbd2/sda1-8:210 blocked for more than 120 seconds.
INFO: task kworker/u4:3:412 blocked for more than 122 seconds.
INFO: task tokio runtime w:77 blocked for more than 120 seconds.
INFO: task dd:456 blocked in I/O wait for more than 122 seconds.
Kernel panic - not syncing: hung_task: blocked tasks
""",
    "out-of-memory": """
Out of Memory: Killed process 12726 (mtest).
Out of memory: kill process 2345 (httpd) score 51 or a child
Out of memory: Kill process 30714 (mysqld) score 501 or sacrifice child
Out of memory: Killed process 141 (tail) total-vm:195300kB, anon-rss:192196kB, file-rss:4kB
Memory cgroup out of memory: Killed process 4182 (order-worker) total-vm:812044kB, anon-rss:518420kB
mysqld invoked oom-killer: gfp_mask=0x201da, order=0, oom_score_adj=0
msgctl11 invoked oom-killer: gfp_mask=0xd0, order=1, oom_adj=0
VM: killing process init
Kernel panic - not syncing: Out of memory and no killable processes...
Kernel panic - not syncing: System is deadlocked on memory
Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled
Kernel panic: Out of memory and no killable processes...
""",
}
FOUND = {
    "kasan": """
BUG: KASAN: slab-out-of-bounds in kmalloc_oob_right+0x6c/0x90 [test_kasan]
BUG: KASan: out of bounds on stack in kasan_stack_oob+0x3f/0x50 at addr ffff88006ac97d2a
KASAN: null-ptr-deref in range [0x0000000000000008-0x000000000000000f]
""",
    "kfence": "BUG: KFENCE: use-after-free read in test_use_after_free_read+0xb3/0x143",
    "kcsan": "BUG: KCSAN: data-race in test_kernel_read / test_kernel_write",
    "kmsan": "BUG: KMSAN: uninit-value in number+0x1c2/0x1bc0",
    "ubsan": """
UBSAN: Undefined behaviour in ../include/linux/bitops.h:110:33
UBSAN: array-index-out-of-bounds in drivers/net/foo.c:12:9
""",
    "kmemleak": "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
    "lockdep": """
[ INFO: possible circular locking dependency detected ]
WARNING: possible circular locking dependency detected
[ INFO: possible recursive locking detected ]
WARNING: possible irq lock inversion dependency detected
WARNING: inconsistent lock state
WARNING: bad unlock balance detected!
[ BUG: bad unlock balance detected! ]
WARNING: HARDIRQ-safe -> HARDIRQ-unsafe lock order detected
WARNING: suspicious RCU usage
[ INFO: suspicious RCU usage. ]
[ INFO: suspicious rcu_dereference_check() usage. ]
WARNING: lock held when returning to user space!
[ BUG: Invalid wait context ]
BUG: MAX_LOCKDEP_ENTRIES too low!
""",
    "spinlock": """
BUG: spinlock bad magic on CPU#0, swapper/0/1
BUG: spinlock lockup suspected on CPU#1, kworker/1:1/33
BUG: spinlock recursion on CPU#0, modprobe/101
BUG: rwlock-lockup on CPU#0, cat/2310, ffff88003b2c9000
""",
    "bad-page": """
BUG: Bad page state in process swapper  pfn:00000
Bad page state in process 'kswapd0'
BUG: Bad page map in process fork13  pte:80000000 pmd:1d6067
mm/memory.c:397: bad pmd 000000040080004d.
""",
    "bad-rss": """
BUG: Bad rss-counter state mm:ffff8801ced99880 idx:0 val:-1836508
BUG: Bad rss-counter state mm:00000000452453e0 type:MM_FILEPAGES val:-1
BUG: Bad rss-counter state mm:00000000452453e0 type:MM_FILEPAGES val:-1 Comm:syz Pid:71
BUG: non-zero nr_ptes on freeing mm: 15
BUG: non-zero pgtables_bytes on freeing mm: 4096
""",
    "cfi": """
CFI failure at kobject_put+0xbb/0x1b0 (target: kfree+0x0/0x180; expected type: 0x7c4aa698)
CFI failure (target: show_status+0x0/0x70):
""",
    "slab": """
BUG kmalloc-64 (Not tainted): Right Redzone overwritten
BUG task_struct (Tainted: G    B   W ): Poison overwritten
BUG kmalloc-64: Redzone overwritten
slab error in verify_redzone_free(): cache `size-32': memory outside object was overwritten
""",
    "corruption": """
list_add corruption. next->prev should be prev (ffff8881), but was 0000000. (next=ffff8882).
refcount_t: underflow; use-after-free.
""",
    "atomic": """
BUG: scheduling while atomic: swapper/0/1/0x00000002
bad: scheduling while atomic!
BUG: sleeping function called from invalid context at kernel/locking/mutex.c:580
Debug: sleeping function called from illegal context at mm/slab.c:1906
BUG: using smp_processor_id() in preemptible [00000000] code: modprobe/98
""",
    "allocation-failure": """
swapper: page allocation failure. order:1, mode:0x20
kworker/0:2: page allocation failure: order:4, mode:0x40dc0(GFP_KERNEL|__GFP_COMP|__GFP_ZERO)
__alloc_pages: 0-order allocation failed (gfp=0x1d2/0)
""",
    "interrupt": 'irq 11: nobody cared (try booting with the "irqpoll" option)',
    "hardware-error": "mce: [Hardware Error]: CPU 2: Machine Check: 0 Bank 4: be00000000800400",
    "warning": """
WARNING: CPU: 0 PID: 1 at kernel/sched/core.c:8511 sched_init+0x20/0x410
WARNING: CPU: 1 PID: 140 at /tmp/q/h/mod/kdcrash.c:11 kdcrash_init+0x63/0x1000 [kdcrash]
WARNING: kernel/sched/core.c:6388 at pick_next_task+0xb82/0xbf0, CPU#7: swapper/7/0
WARNING: [ptr == 0 && 1] kernel/sched/core.c:8511 at sched_init+0x20/0x410 CPU#0: swapper/0
WARNING: at kernel/irq/manage.c:432 enable_irq+0x60/0x74()
WARNING: at kernel/workqueue.c:1360
Badness in local_bh_enable at kernel/softirq.c:119
Badness at kernel/softirq.c:126
""",
}
NO_OOPS = """
traps: fprintd[1684] general protection fault ip:7fcccd4a8ea7 sp:7ffe error:0 in libc.so.6[7fcccd428000+155000]
traps: a.out[3615] general protection ip:7feb96eb56a1 sp:20000fd0 error:0
a.out[3615] general protection ip:40053c sp:7fff7e7c9c60 error:0
traps: a.out[99] trap divide error ip:400544 sp:7ffd0000 error:0 in a.out[400000+1000]
traps: a.out[99] trap invalid opcode ip:4004da sp:7ffd0000 error:0
traps: a.out[99] trap int3 ip:4004d7 sp:7ffd0000 error:0
traps: a.out[99] trap stack segment ip:4004d7 sp:7ffd0000 error:0
a.out[1835]: segfault at 0 ip 00007f sp 00007ffc2c02c8d0 error 14 in a.out[5651e3991000+8000]
a.out[77]: unhandled signal 11 code 0x1 at 0x0000000000000000 in a.out[10000+1000]
a.out[77]: unhandled level 2 translation fault (11) at 0x00000000, esr 0x92000006
""".strip().splitlines()
NO_TROUBLE = """
Kernel command line: console=ttyS0 panic=-1 oops=panic softlockup_panic=1 hung_task_panic=1
NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.
watchdog: Delayed init of the lockup detector failed: -19
rcu: RCU lockdep checking is enabled.
Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar
kasan: KernelAddressSanitizer initialized
kfence: initialized - using 2097152 bytes for 255 objects
kmemleak: Kernel memory leak detector initialized (mem pool available: 15863)
SLUB: HWalign=64, Order=0-3, MinObjects=0, CPUs=2, Nodes=1
workqueue: blk_mq_run_work_fn hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND
mce: CPU0: Thermal monitoring enabled (TM1)
Linux version 6.1.0 (builder@host) #1 SMP PREEMPT_DYNAMIC Debian 6.1.0-1
Out of tree module taints the kernel.
WARNING: All config files need .conf: /etc/modprobe.d/x, it will be ignored in a future release.
""".strip().splitlines()


def rows(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, line) for name, text in table.items() for line in text.strip().splitlines()]


def named(*lines: str) -> str:
    stamped = [f"[   12.{number:06}] {line}" for number, line in enumerate(lines)]
    return diagnose(["[    0.000000] Linux version", *stamped], ended="off", ready=True, seconds=1).void


@pytest.mark.parametrize("line", OOPSES)
def test_an_oops_is_an_oops_and_no_panic(line):
    assert named(line) == named(line, "Kernel panic - not syncing: Fatal exception") == "oops"
    assert "oops" in findings([f"[    1.0][  T77] {line}"]) and "oops" in findings([f"<1>{line}"])


@pytest.mark.parametrize("line", PANICS)
def test_a_panic_is_a_panic_in_every_form(line):
    assert named(line) == "panic"


@pytest.mark.parametrize(("name", "line"), rows(VOID))
def test_what_ends_a_boot_is_named(name, line):
    assert named(line) == name


@pytest.mark.parametrize(("name", "line"), rows(FOUND))
def test_what_a_kernel_goes_on_from_is_found_and_no_end(name, line):
    assert name in findings([f"[    1.000000] {line}"])
    assert "oops" not in findings([line])
    assert named(line) in ("silent-exit", "soft-lockup")


@pytest.mark.parametrize("line", [*NO_OOPS, *NO_TROUBLE])
def test_no_alarm_for_a_programs_own_fault_or_an_ordinary_message(line):
    assert findings([f"[    1.000000] {line}"]) == {}
    assert named(line) == "silent-exit"


@pytest.mark.slow
def test_no_alarm_in_any_log_of_an_ordinary_boot():
    logs = [
        HERE / f"consoles/{name}.log" for name in ("silent-exit", "silent-reboot", "deadline", "boot-hang", "frozen")
    ]
    logs += sorted((HERE.parent / "machines/boards/logs").glob("*.log"))
    logs += sorted(path for path in (HERE.parent / "benchmarks/captured").rglob("*") if path.is_file())
    assert len(logs) > 50
    for log in logs:
        assert findings(read_console(log)) == {}, log


KILLS = [
    [
        "kmem invoked oom-killer: gfp_mask=0x140dca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0",
        "Out of memory: Killed process 141 (kmem) total-vm:195300kB, anon-rss:192196kB, file-rss:4kB",
        "oom_reaper: reaped process 141 (kmem), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB",
    ],
    [
        "sh invoked oom-killer: gfp_mask=0x201da, order=0, oom_score_adj=0",
        "Out of memory: Kill process 141 (kmem) score 901 or sacrifice child",
        "Killed process 141 (kmem) total-vm:195300kB, anon-rss:192196kB, file-rss:4kB",
    ],
    ["Out of Memory: Killed process 141 (kmem)."],
]


@pytest.mark.parametrize("kill", KILLS, ids=["5.2", "3.0", "2.4"])
def test_the_kill_that_the_memory_benchmark_asks_for_is_no_trouble(kill):
    assert findings(kill) == {}
    assert named(*kill) == "silent-exit"
    assert named(*kill, "BUG: kernel NULL pointer dereference, address: 8") == "oops"
    assert named(*kill, "Kernel panic - not syncing: sysrq triggered crash") == "panic"
    assert named(*kill, "watchdog: BUG: soft lockup - CPU#0 stuck for 71s! [sh:1]") == "soft-lockup"
    # Another one's is trouble.
    assert named(*[line.replace("(kmem)", "(systemd)") for line in kill]) == "out-of-memory"
    assert (
        named(*kill, "sh invoked oom-killer: gfp_mask=0x201da, order=0", "Killed process 9 (sh), now")
        == "out-of-memory"
    )


def test_the_cause_stands_before_what_it_leads_to():
    lockup = "watchdog: BUG: soft lockup - CPU#0 stuck for 71s! [insmod:141]"
    assert named(lockup, "Kernel panic - not syncing: softlockup: hung tasks") == "soft-lockup"
    # A stall that the boot recovered from is not what it ended by.
    assert named(lockup, "BUG: kernel NULL pointer dereference, address: 8") == "oops"
    assert named(lockup, "Kernel panic - not syncing: sysrq triggered crash") == "panic"
    killed = "Out of memory: Killed process 1 (init) total-vm:4kB, anon-rss:4kB"
    assert named(killed, "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000009") == "out-of-memory"
    other = "Out of memory: Killed process 99 (sh) total-vm:4kB, anon-rss:4kB"
    assert named(other, "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b") == "panic"
    assert named("Kernel panic - not syncing: X", "Oops: 0002 [#1] SMP") == "panic"


def test_the_kernels_own_log_counts_too(tmp_path):
    (tmp_path / "console.log").write_text("     0.100 [    0.000000] Linux version\n")
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment/uname").write_text("Linux kduel 6.1.0\n")
    (tmp_path / "environment/dmesg").write_text("[    5.0] WARNING: at kernel/workqueue.c:1360\n")
    assert findings_in(tmp_path) == {"warning": "[    5.0] WARNING: at kernel/workqueue.c:1360"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "flood",
    [
        "\n" * 8_000_000,
        "WARNING: [" * 800_000,
        "BUG: x (\n" * 800_000,
        "INFO: task " * 700_000,
        "Kernel panic - not " * 400_000,
    ],
    ids=["lines", "one line", "keywords", "names", "panics"],
)
def test_a_flood_costs_seconds_and_no_more(flood):
    # Without a bound on lines and their length this does not end.
    assert len(searched_lines(flood.split("\n"))) <= 2 * MOST_LINES
    findings(flood.split("\n"))
    assert len(diagnose(flood.split("\n"), ended="off", ready=True, seconds=1).message) < 10_000
