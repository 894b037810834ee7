/**
 * The light runtime's filter of system calls in the words of engines, for Podman: its own default lets any process make user
 * namespaces, and with them mounts. Docker's default does not, and is left as it is.
 */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DENIED, ENOSYS, EPERM, NEW_NAMESPACES, TIOCLINUX, TIOCSTI } from '../rootfs/seccomp.ts';

type Condition = {
  index: number;
  value: number;
  valueTwo?: number;
  op: 'SCMP_CMP_EQ' | 'SCMP_CMP_MASKED_EQ';
};
type Rule = { names: string[]; action: 'SCMP_ACT_ERRNO'; errnoRet: number; args?: Condition[] };

const refuse = (names: string[], errnoRet: number, condition?: Condition): Rule => ({
  names,
  action: 'SCMP_ACT_ERRNO',
  errnoRet,
  ...(condition ? { args: [condition] } : {}),
});

/** One rule for each namespace that clone could make: a condition is on one value of the masked bits. */
const namespaceBits = (): number[] =>
  Array.from({ length: 31 }, (_, bit) => 2 ** bit).filter((value) => (NEW_NAMESPACES & value) !== 0);

export function seccompProfile(arch: NodeJS.Architecture = process.arch): object {
  return {
    defaultAction: 'SCMP_ACT_ALLOW',
    architectures: [arch === 'arm64' ? 'SCMP_ARCH_AARCH64' : 'SCMP_ARCH_X86_64'],
    syscalls: [
      refuse(Object.keys(DENIED), EPERM),
      refuse(['clone3'], ENOSYS),
      ...namespaceBits().map((value) =>
        refuse(['clone'], EPERM, { index: 0, value, valueTwo: value, op: 'SCMP_CMP_MASKED_EQ' }),
      ),
      ...[TIOCSTI, TIOCLINUX].map((value) =>
        refuse(['ioctl'], EPERM, { index: 1, value, op: 'SCMP_CMP_EQ' }),
      ),
    ],
  };
}

/** The profile as a file, which is how Podman takes it; gone with its handle. */
export async function profileFile(): Promise<AsyncDisposable & { path: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-seccomp-'));
  const path = join(folder, 'profile.json');
  await writeFile(path, JSON.stringify(seccompProfile()));
  // The engine may be another user's.
  await chmod(path, 0o644);
  await chmod(folder, 0o755);
  return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}
