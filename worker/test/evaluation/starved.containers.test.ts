/** A job or a pod with less memory than its sandboxes may use together: processes that its limit kills get no verdict. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describeUnless } from '@swefarm/sandbox/test/subject.ts';
import { poll } from '@swefarm/shared';
import { minimalImage } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';

const run = promisify(execFile);
const CHILD = new URL('./starved.child.ts', import.meta.url).pathname;
/** More than the child and its helpers need, but less than they and HOG of starved.child.ts need together. */
const JOB_BYTES = 450 * 1024 ** 2;
const ENTER = 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"';

const version1 = '/sys/fs/cgroup/memory';
const isVersion1 = existsSync(join(version1, 'memory.limit_in_bytes'));
const group = join(isVersion1 ? version1 : '/sys/fs/cgroup', `swefarm-test-starved-${process.pid}`);

/** Makes a control group like that of a job; returns why it cannot, or null. */
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
const folder = temporaryFolder('starved');
afterAll(async () => {
  // The kernel removes processes from their group shortly after their end.
  await poll(() => isRemoved(group), { pauseMs: 100, withinMs: 30_000 });
});

describeUnless(missing, 'in a job with less memory than its sandboxes may use', () => {
  let answer: Record<'shell' | 'tests', Record<'job' | 'own', string>>;
  beforeAll(async () => {
    const image = `dir:${(await minimalImage()).tree}`;
    const line = ['-c', ENTER, 'sh', group, process.execPath, CHILD, folder, image];
    answer = JSON.parse((await run('/bin/sh', line)).stdout);
  });

  it('a command that the job kills for memory is a fault of the node, not an observation', () => {
    expect(answer.shell).toEqual({ job: 'node_memory', own: 'killed_by_limit' });
  });

  it('tests that the job kills for memory get no verdict; tests over their own limit do', () => {
    expect(answer.tests).toEqual({ job: 'node_memory', own: 'exit 137' });
  });
});
