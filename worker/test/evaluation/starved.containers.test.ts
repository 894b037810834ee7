/** A job or a pod whose sandboxes may use more memory together than it has: whom the kernel kills then is not judged by it. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describeUnless } from '@swefarm/sandbox/test/subject.ts';
import { poll } from '@swefarm/shared';
import { minimalImage } from '@swefarm/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';

const run = promisify(execFile);
const CHILD = new URL('./starved.child.ts', import.meta.url).pathname;
/** More than the child and its helpers take, less than that and the hog. */
const JOB_BYTES = 450 * 1024 ** 2;
const ENTER = 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"';

const version1 = '/sys/fs/cgroup/memory';
const isVersion1 = existsSync(join(version1, 'memory.limit_in_bytes'));
const group = join(isVersion1 ? version1 : '/sys/fs/cgroup', `swefarm-test-starved-${process.pid}`);

/** Makes a group like that of a job; why none can be made, or null. */
function makeGroup(): string | null {
  try {
    mkdirSync(group);
    writeFileSync(join(group, isVersion1 ? 'memory.limit_in_bytes' : 'memory.max'), String(JOB_BYTES));
    return null;
  } catch (error) {
    return `no control group with a limit of memory can be made here: ${(error as Error).message}`;
  }
}

const isRemoved = async (path: string): Promise<true | null> => {
  try {
    if (existsSync(path)) rmdirSync(path);
    return true;
  } catch {
    return null;
  }
};

const missing = makeGroup();
const folder = await mkdtemp(join(tmpdir(), 'swefarm-starved-'));
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  // The kernel takes processes out of their group a moment after their end.
  await poll(() => isRemoved(group), { pauseMs: 100, withinMs: 30_000 });
});

describeUnless(missing, 'in a job with less memory than its sandboxes may use', () => {
  let answer: Record<'shell' | 'tests', Record<'job' | 'own', string>>;
  beforeAll(async () => {
    const image = `dir:${(await minimalImage()).tree}`;
    const line = ['-c', ENTER, 'sh', group, process.execPath, CHILD, folder, image];
    answer = JSON.parse((await run('/bin/sh', line)).stdout);
  });

  it('a command of the agent that the job ends for memory is no observation: the node is at fault', () => {
    expect(answer.shell).toEqual({ job: 'node_memory', own: 'killed_by_limit' });
  });

  it('tests that the job ends for memory are no verdict; tests over their own limit are', () => {
    expect(answer.tests).toEqual({ job: 'node_memory', own: 'exit 137' });
  });
});
