/**
 * Translates the system call filter of the rootfs runtime to the engines' format. Podman's default filter allows user namespaces, and
 * mounts inside them. The default filters of both engines allow a limit on the memory of process 1, which ends the container.
 */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Engine } from '../engine/settings.ts';
import { DENIED, equal, RULES, type Rule, refuse } from '../namespaces/seccomp.ts';

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

/** Translates a rule to the format of libseccomp. */
const inEnginesFormat = ({ names, errno, conditions }: Rule): object => ({
  ...{ names, action: 'SCMP_ACT_ERRNO', errnoRet: errno },
  args: conditions.map(({ index, mask, value }) => ({
    ...{ index, value: mask, valueTwo: value, op: 'SCMP_CMP_MASKED_EQ' },
  })),
});

export function seccompProfile(engine: Engine, arch: NodeJS.Architecture = process.arch): object {
  const denied = Object.keys(DENIED).filter((name) => !isLeftTo(engine, name));
  const tracing = Object.entries(engine === 'docker' ? TRACING : {});
  return {
    defaultAction: 'SCMP_ACT_ALLOW',
    architectures: (ARCHITECTURES[arch] ?? ARCHITECTURES.x64)?.[engine],
    syscalls: [
      refuse(denied),
      ...RULES,
      ...tracing.map(([name, index]) => refuse([name], equal(index, 1))),
    ].map(inEnginesFormat),
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
