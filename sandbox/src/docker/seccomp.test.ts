import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Engine } from '../engine/settings.ts';
import { ABSENT, DENIED, PERSONALITIES } from '../namespaces/seccomp.ts';
import { seccompProfile } from './seccomp.ts';

type Condition = { index: number; value: number; valueTwo?: number; op: string };
type Group = {
  names: string[];
  action: string;
  args?: Condition[];
  includes?: { caps?: string[]; arches?: string[] };
};

const rulesOf = (engine: Engine): Group[] =>
  (seccompProfile(engine, 'x64') as { syscalls: Group[] }).syscalls;
const refusedBy = (engine: Engine, name: string, ...args: number[]): boolean =>
  rulesOf(engine).some(
    (rule) =>
      rule.names.includes(name) &&
      (rule.args ?? []).every(({ index, value, valueTwo = 0, op }) => {
        const given = BigInt(args[index] ?? 0);
        return op === 'SCMP_CMP_EQ' ? given === BigInt(value) : (given & BigInt(value)) === BigInt(valueTwo);
      }),
  );

const refused = (name: string, ...args: number[]): boolean => refusedBy('podman', name, ...args);

test.each(['docker', 'podman'] as const)('%s: process 1 is protected, others may be limited', (engine) => {
  expect([1, 0, 2, 0x1_0000_0001].map((pid) => refusedBy(engine, 'prlimit64', pid))).toEqual([
    ...[true, false, false, true],
  ]);
  expect(refusedBy(engine, 'io_setup', 128)).toBe(true);
});

test("calls that Docker's own filter allows stay allowed on Docker, except on process 1", () => {
  expect([refusedBy('docker', 'ptrace', 16, 1), refusedBy('docker', 'ptrace', 16, 2)]).toEqual([true, false]);
  expect([refusedBy('docker', 'process_vm_writev', 1), refusedBy('docker', 'process_vm_writev', 2)]).toEqual([
    ...[true, false],
  ]);
  expect([refusedBy('docker', 'vmsplice'), refusedBy('docker', 'mount')]).toEqual([false, true]);
  expect([refused('ptrace', 16, 2), refused('vmsplice')]).toEqual([true, true]);
});

test('the conditions equal those of the rootfs runtime', () => {
  expect([refused('socket', 40, 1, 0), refused('socketpair', 38, 1, 0), refused('socket', 16, 3, 9)]).toEqual(
    [true, true, true],
  );
  expect([refused('socket', 2, 1, 9), refused('socket', 16, 3, 0), refused('socket', 1)]).toEqual([
    false,
    false,
    false,
  ]);
  for (const value of PERSONALITIES) expect(refused('personality', value)).toBe(false);
  for (const value of [0x40000, 0x400000, 0xfffdfff7, 0xfffffff7, 0x80000000, 1])
    expect(refused('personality', value), String(value)).toBe(true);
  // The kernel reads only the lower half.
  expect([refused('socket', 0x1_0000_0028), refused('ioctl', 1, 0x1_0000_5412)]).toEqual([true, true]);
  expect([refused('clone', 0x10000000), refused('clone', 0x01200011)]).toEqual([true, false]);
});

const PODMANS = '/usr/share/containers/seccomp.json';
if (existsSync(PODMANS)) {
  test("our list denies all calls that Podman's own list denies an unprivileged container", () => {
    const groups = (JSON.parse(readFileSync(PODMANS, 'utf8')) as { syscalls: Group[] }).syscalls;
    const given = (group: Group): boolean =>
      group.action === 'SCMP_ACT_ALLOW' &&
      !group.includes?.caps?.length &&
      (!group.includes?.arches?.length || group.includes.arches.includes('amd64'));
    const allowed = new Set(groups.filter(given).flatMap(({ names }) => names));
    const denied = new Set(groups.flatMap(({ names }) => names).filter((name) => !allowed.has(name)));
    // Calls of other machines, or of 32 bits, whose numbers mean nothing here.
    const elsewhere =
      /^(bdflush|nice|old\w+|pciconfig_\w+|[sg]{1,2}etmask|swapcontext|vm86(old)?|s390_\w+|stime|\w+64|sync_file_range2|arm_\w+|breakpoint|cacheflush|set_tls|riscv_\w+|spu_\w+|subpage_prot|multiplexer|rtas|switch_endian|socketcall|ipc|idle|sigreturn|chown32|ssetmask)$/;
    const open = [...denied].filter(
      (name) => !(name in DENIED) && !(name in ABSENT) && !elsewhere.test(name),
    );
    expect(open).toEqual([]);
  });
}
