/**
 * Translates the system call filter of the rootfs runtime to the engines' format. Podman's default filter allows user namespaces, and
 * mounts inside them. The default filters of both engines allow a limit on the memory of process 1, which ends the container.
 */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine } from '../engine/settings.ts';
import {
  ABSENT,
  AF_NETLINK,
  DENIED,
  DENIED_FAMILIES,
  ENOSYS,
  EPERM,
  NETLINK_AUDIT,
  NEW_NAMESPACES,
  PERSONALITIES,
  SPARES_FIRST,
  TIOCLINUX,
  TIOCSTI,
} from '../namespaces/seccomp.ts';

type Condition = {
  index: number;
  value: number;
  valueTwo: number;
  op: 'SCMP_CMP_MASKED_EQ';
};
type Rule = { names: string[]; action: 'SCMP_ACT_ERRNO'; errnoRet: number; args?: Condition[] };

/** Compares the lower 32 bits of an argument; the kernel reads no more of it. */
const equal = (index: number, value: number): Condition => ({
  ...{ index, value: 0xffffffff, valueTwo: value, op: 'SCMP_CMP_MASKED_EQ' },
});

const refuse = (names: string[], errnoRet: number, ...conditions: Condition[]): Rule => ({
  names,
  action: 'SCMP_ACT_ERRNO',
  errnoRet,
  ...(conditions.length > 0 ? { args: conditions } : {}),
});

/** One rule for each kind of namespace, because a condition compares the masked bits with one value. */
const namespaceBits = (): number[] =>
  Array.from({ length: 31 }, (_, bit) => 2 ** bit).filter((value) => (NEW_NAMESPACES & value) !== 0);

/** Calls that Docker's default filter allows and a gold patch may need, with the index of the pid. They are denied only on process 1. */
const TRACING = { ptrace: 1, process_vm_readv: 0, process_vm_writev: 0 } as const;
const HARMLESS = new Set([
  'adjtimex',
  'clock_adjtime',
  'io_pgetevents',
  'modify_ldt',
  'name_to_handle_at',
  'vmsplice',
]);
const isLeftTo = (engine: Engine, name: string): boolean =>
  engine === 'docker' && (name in TRACING || HARMLESS.has(name));

/** Docker also runs 32-bit programs; their calls have the same names. */
const ARCHITECTURES: Partial<Record<NodeJS.Architecture, Record<Engine, string[]>>> = {
  x64: { docker: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86'], podman: ['SCMP_ARCH_X86_64'] },
  arm64: { docker: ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_ARM'], podman: ['SCMP_ARCH_AARCH64'] },
};

const SOCKETS = ['socket', 'socketpair'];

/**
 * Matches all values except {@link PERSONALITIES}: a value is usual if all 32 bits are set, or if it has only bits of the usual values.
 * A rule has one condition on an argument, so each condition compares two bits.
 */
function strangePersonalities(): Condition[] {
  const bits = Array.from({ length: 32 }, (_, bit) => 2 ** bit);
  const usual = PERSONALITIES.slice(0, -1);
  const strange = bits.filter((bit) => usual.every((value) => Math.floor(value / bit) % 2 === 0));
  const pairs = [
    ...strange.map((bit, at) => [bit, strange[(at + 1) % strange.length] ?? bit]),
    ...bits.filter((bit) => !strange.includes(bit)).map((bit) => [strange[0] ?? 0, bit]),
  ];
  return pairs.map(([set = 0, unset = 0]) => ({
    index: 0,
    value: set + unset,
    valueTwo: set,
    op: 'SCMP_CMP_MASKED_EQ',
  }));
}

const firstProcessRules = (engine: Engine): Rule[] => [
  ...Object.entries(SPARES_FIRST).map(([name, { index }]) => refuse([name], EPERM, equal(index, 1))),
  ...Object.entries(engine === 'docker' ? TRACING : {}).map(([name, index]) =>
    refuse([name], EPERM, equal(index, 1)),
  ),
];

export function seccompProfile(engine: Engine, arch: NodeJS.Architecture = process.arch): object {
  return {
    defaultAction: 'SCMP_ACT_ALLOW',
    architectures: (ARCHITECTURES[arch] ?? ARCHITECTURES.x64)?.[engine],
    syscalls: [
      refuse(
        Object.keys(DENIED).filter((name) => !isLeftTo(engine, name)),
        EPERM,
      ),
      refuse(Object.keys(ABSENT), ENOSYS),
      ...firstProcessRules(engine),
      ...namespaceBits().map((value) =>
        refuse(['clone'], EPERM, { index: 0, value, valueTwo: value, op: 'SCMP_CMP_MASKED_EQ' }),
      ),
      ...[TIOCSTI, TIOCLINUX].map((value) => refuse(['ioctl'], EPERM, equal(1, value))),
      ...Object.values(DENIED_FAMILIES).map((value) => refuse(SOCKETS, EPERM, equal(0, value))),
      refuse(SOCKETS, EPERM, equal(0, AF_NETLINK), equal(2, NETLINK_AUDIT)),
      ...strangePersonalities().map((condition) => refuse(['personality'], EPERM, condition)),
    ],
  };
}

/** Writes Podman's profile to a file, as Podman requires; disposing of the handle removes the file. */
export async function profileFile(): Promise<AsyncDisposable & { path: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-seccomp-'));
  const path = join(folder, 'profile.json');
  await writeFile(path, JSON.stringify(seccompProfile('podman')));
  // The engine may run as another user.
  await chmod(path, 0o644);
  await chmod(folder, 0o755);
  return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}
