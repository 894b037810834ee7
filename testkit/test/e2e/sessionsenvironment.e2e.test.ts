/** Sessions of instances that bring an environment: an outside driver has the folder, activation, variables and gaps that an agent of ours has. */
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeFamilyInstances } from '../../src/families/instances.ts';
import { startCommand } from '../../src/launchers/commands.ts';
import { startRedis } from '../../src/launchers/redis.ts';
import { caller, patiently, type Reply, SESSION_TOKEN, startWorker } from './sessiondriver.ts';

const MEND = "printf 'def add(a, b):\\n    return a + b\\n' >calc.py";

/** A row that has all that an environment can say; its commit tells the answer. */
async function ownRow(folder: string): Promise<Record<string, unknown>> {
  const tree = join(folder, 'own');
  const repository = join(tree, 'srv/depot');
  await mkdir(repository, { recursive: true });
  await mkdir(join(tree, 'answers'), { recursive: true });
  await writeFile(join(tree, 'answers/calc.txt'), 'a + b\n');
  await writeFile(join(repository, 'calc.py'), 'def add(a, b):\n    return a + b\n');
  const git = (...args: string[]): string =>
    execFileSync('git', ['-C', repository, '-c', 'user.name=n', '-c', 'user.email=e@x', ...args], {
      encoding: 'utf8',
    }).trim();
  git('init', '-q');
  git('add', '.');
  git('commit', '-qm', 'THE FIX');
  return {
    ...{ instance_id: 'own__depot-1', repo: 'own/depot', base_commit: git('rev-parse', 'HEAD') },
    ...{ image: `host+dir:${tree}`, problem_statement: 'add subtracts.' },
    ...{ FAIL_TO_PASS: [], PASS_TO_PASS: [] },
    environment: {
      workdir: '/srv/depot',
      activate: 'CRATES=7; export CRATES',
      env: { DEPOT: 'north' },
      setup: [{ name: 'put the bug in', script: "sed -i 's/a + b/a - b/' calc.py" }],
      hidden: ['/answers'],
      history: 'replaced',
    },
    plan: {
      grader: 'own-1',
      apply: [{ name: 'git apply', argv: ['git', 'apply', '/tmp/patch.diff'] }],
      script:
        'cd /srv/depot && test -e /answers/calc.txt && test "$DEPOT" = north && python3 -c "from calc import add; assert add(1, 2) == 3"',
      outcomes: { from: 'exit_code' },
      verdict: { rule: 'exit_code' },
    },
  };
}

test('a session has the folder, activation, variables and gaps of its instance, and is graded by its plan', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'swefarm-sessions-'));
  await using redis = await startRedis();
  const families = await makeFamilyInstances(join(folder, 'trees'), undefined, ['r2e-gym', 'swe-bench-pro']);
  const env = {
    SWEFARM_REDIS_URL: redis.url,
    SWEFARM_STATE_DIR: join(folder, 'state'),
    SWEFARM_SCRATCH_DIR: join(folder, 'scratch'),
    SWEFARM_RUNTIME: 'rootfs',
    SWEFARM_CONCURRENCY: '3',
    SWEFARM_GATEWAY_TOKEN: SESSION_TOKEN,
  };
  const serve = startCommand('swefarm', ['serve', '--port', '0'], env);
  await serve.until(/"url"/);
  const call = caller(JSON.parse(serve.stdout()).url);
  const worker = await startWorker(`environment${process.pid}`, env);

  const open = async (request_id: string, instance: unknown): Promise<string> => {
    const { status, body } = await call('POST', '', { request_id, instance });
    expect(status, JSON.stringify(body)).toBe(200);
    return String(body.session_id);
  };
  const run = async (id: string, seq: number, command: string): Promise<string> => {
    const told: Reply['body'] = await patiently(() =>
      call('POST', `/${id}/commands`, { seq, command, wait_s: 20 }),
    );
    expect(told, JSON.stringify(told)).toMatchObject({ state: 'answered', seq });
    return String(told.observation);
  };
  const submit = (id: string): Promise<Reply['body']> =>
    patiently(() => call('POST', `/${id}/submit`, { wait_s: 20 }));
  const resolved = { result: { outcome: 'judged', resolved: true, reward: 1 } };

  const own = await open('own', await ownRow(folder));
  const seen = await run(
    own,
    1,
    `pwd; echo "[$DEPOT $CRATES]"; cat calc.py; ls -d /answers; git log --format=%s --all; git status --short
for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o; done`,
  );
  expect(seen).toContain('/srv/depot\n[north 7]\n');
  expect(seen).toContain('return a - b');
  expect(seen).not.toMatch(/a \+ b|THE FIX|^\/answers$/m);
  await run(own, 2, MEND);
  expect(await submit(own)).toMatchObject(resolved);

  const workdirs = { 'r2e-gym': '/testbed', 'swe-bench-pro': '/app' };
  for (const [name, { row, fix }] of families) {
    const id = await open(name, row);
    const looked = await run(
      id,
      1,
      `pwd; ls -A; ls -A /; git log --all --format='%H %s'; git tag; env; hostname
for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o | grep -a 'a + b'; done`,
    );
    expect(looked, name).toContain(`<output>\n${workdirs[name as keyof typeof workdirs]}\n`);
    expect(looked, name).not.toMatch(/a \+ b|THE FIX|v99|r2e_tests|run_tests/);
    expect(looked, name).not.toContain(fix);
    await run(id, 2, MEND);
    expect(await submit(id), name).toMatchObject(resolved);
  }

  worker.kill('SIGTERM');
  expect(await worker.exit, worker.stderr()).toBe(0);
  serve.kill('SIGTERM');
  expect(await serve.exit).toBe(0);
  await rm(folder, { recursive: true, force: true });
});
