/** What the contract suites are run against, and the small things every case needs. */
import { spawnSync } from 'node:child_process';
import { describe, it } from 'vitest';
import type { Container, ContainerSpec, ExecResult, Limits, ReadyImage, Runtime } from '../src/runtime.ts';
import { openPreparedShell } from '../src/shell.ts';
import { type Concealment, prepareTree, type Snapshot } from '../src/snapshot.ts';

export type Subject = {
  runtime: Runtime;
  /** An image with bash, coreutils, git and python3, and an empty /testbed. */
  image: string;
  /** The same without bash; null where the runtime takes no image. */
  imageWithoutBash: string | null;
};

export type ContractOptions = {
  /** The runtime keeps processes, network and files apart from the host's. */
  isolated: boolean;
  /** Its sandboxes are children of the worker, so that whoever ends a whole job ends these too. */
  children?: boolean;
  /** Limits that hold, and by whom: the kernel, or our watchdog. */
  limits: Partial<Record<'memory' | 'pids', 'enforced' | 'watched'>>;
  /** False: a core of the suite, for runtimes that share their code with one that runs all of it. Default true. */
  whole?: boolean;
};

/** Of runtimes whose whole contract is too long for every submission: `npm run ci:full` sets it. */
export const WHOLE = process.env.SWEFARM_TEST_WHOLE_CONTRACT === '1';

/** In the test image and nowhere else: cases that would harm a real machine look for it before they do anything. */
export const TEST_IMAGE_MARKER = '/swefarm-test-image';
export const NEVER = new AbortController().signal;
export const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
export const LIMITS: Limits = { cpus: 2, memoryBytes: 512 * 1024 * 1024, pids: 256, diskBytes: null };

/** Distinguishes this test process's containers from those of others on the machine. */
export const FARM = `contract-${process.pid}`;

export function spec(image: ReadyImage, changes: Partial<ContainerSpec> = {}): ContainerSpec {
  return {
    image,
    role: 'agent',
    owner: { farm: FARM, worker: 'w1', pid: process.pid, pid_started: '1', rollout_id: 'r.i.0', attempt: 1 },
    network: 'none',
    limits: LIMITS,
    workdir: '/testbed',
    env: {},
    ...changes,
  };
}

export async function start(subject: Subject, changes: Partial<ContainerSpec> = {}): Promise<Container> {
  return subject.runtime.start(spec(await subject.runtime.ensureImage(subject.image, NEVER), changes), NEVER);
}

/** Cases that a runtime does not claim to hold are not registered, rather than shown as skipped. */
export function describeIf(holds: boolean, name: string, cases: () => void): void {
  if (holds) describe(name, cases);
}

/** Cases that a machine may be unable to run: `why` says what it lacks, and the closing lines of `npm test` say it again. */
export function describeUnless(why: string | null, name: string, cases: () => void): void {
  if (why === null) describe(name, cases);
  else it(name, ({ skip }) => skip(why));
}

/** Why nothing can be run on Apptainer here; null when it can. */
export const noApptainer = (): string | null =>
  spawnSync('apptainer', ['--version']).status === 0
    ? null
    : 'there is no Apptainer: bash testkit/setup/setup.sh apptainer';

/** What a rollout does to the tree of a container before its first command. */
export async function snapshotOf(container: Container, concealment?: Concealment): Promise<Snapshot> {
  const tree = prepareTree(container.workdir, concealment);
  const options = { workdir: container.workdir, activate: '', env: {} };
  const { shell, prepared } = await openPreparedShell(container, options, tree);
  await shell[Symbol.asyncDispose]();
  return tree.snapshot(prepared);
}

/** A shell script by plain exec in the work tree; throws when it fails. */
export async function sh(container: Container, script: string): Promise<ExecResult> {
  const result = await container.exec(['/bin/sh', '-ec', script], {
    env: { PATH, HOME: '/tmp' },
    cwd: container.workdir,
    timeoutMs: 120_000,
    maxOutputBytes: 65_536,
    signal: NEVER,
  });
  if (result.exitCode !== 0) throw new Error(`exit ${result.exitCode}: ${result.output}`);
  return result;
}
