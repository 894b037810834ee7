/** Requirements of the setup in every isolating runtime: checked steps, hidden paths, a replaced history. */
import { InstanceEnvironment, newId, type Step } from '@swefarm/shared';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { prepareSandbox } from '../src/agentsandbox.ts';
import type { Container, ContainerSpec } from '../src/runtime.ts';
import { runSteps, setUp } from '../src/setup.ts';
import { type Concealment, replaceHistory, type Snapshot, takePatch } from '../src/snapshot.ts';
import { REPOSITORY } from './patch-contract.ts';
import {
  type ContractOptions,
  NEVER,
  printed,
  type Subject,
  sh,
  snapshotOf,
  spec,
  start,
} from './subject.ts';

const WORKDIR = '/srv/depot';

const step = (name: string, script: string, more: Partial<Step> = {}): Step => ({
  ...{ name, script, may_fail: false, timeout: 120, ...more },
});

export function setupContract(subject: () => Subject, options: ContractOptions): void {
  let container: Container;
  const open = async (changes: Partial<ContainerSpec> = {}): Promise<Container> => {
    const made = await start(subject(), { env: { DEPOT: 'north' }, ...changes });
    await sh(made, `mkdir -p ${WORKDIR}`);
    return made;
  };
  beforeEach(async () => {
    container = await open();
  });
  afterEach(async () => {
    await container[Symbol.asyncDispose]();
  });
  const outputOf = async (script: string): Promise<string> => (await printed(container, script)).trim();
  const patchOf = async (snapshot: Snapshot): Promise<string> =>
    (await takePatch(container, snapshot, NEVER)).patch.toString();
  /** Prepares the tree for an agent, as a rollout does. */
  const conceal = async (changes: Partial<Concealment>): Promise<Snapshot> => {
    const concealment = { hidden: [], history: 'pruned' as const, ...changes };
    const snapshot = await snapshotOf(container, concealment);
    if (concealment.history === 'replaced') await replaceHistory(container, snapshot, NEVER);
    return snapshot;
  };

  it('runs steps in order, in the working folder, with the environment of the container', async () => {
    const long = `# ${'x'.repeat(300_000)}\n`;
    const steps = [
      step('one', `${long}printf "$DEPOT $PWD " >>/srv/said`),
      step('two', 'cat; printf two >>/srv/said'),
    ];
    expect(await runSteps(container, steps, NEVER)).toBeNull();
    expect(await outputOf('cat /srv/said')).toBe(`north ${container.workdir} two`);
  });

  it('reports the failed step, its exit code and output, and runs no further step', async () => {
    const steps = [
      step('checkout', 'exit 3', { may_fail: true }),
      step('patch', 'echo "no such branch"; echo swefarm-x 0 0; exit 7'),
      step('build', 'touch /srv/built'),
    ];
    expect(await runSteps(container, steps, NEVER)).toEqual({
      ...{ step: 'patch', how: 'ended with exit code 7', output: 'no such branch\nswefarm-x 0 0' },
    });
    expect(await outputOf('ls /srv')).toBe('depot');
  });

  it('kills a hanging step with all its processes', async () => {
    const hangs = 'sleep 1000 & (trap "" TERM; sleep 1000); touch /srv/on';
    const late = await runSteps(container, [step('fetch', hangs, { timeout: 1 })], NEVER);
    expect(late).toMatchObject({ step: 'fetch', how: 'did not end in 1 s' });
    const passed = [step('fetch', hangs, { timeout: 1, may_fail: true }), step('go on', 'touch /srv/next')];
    expect(await runSteps(container, passed, NEVER)).toBeNull();
    const left = await outputOf('ls /srv; for p in /proc/[0-9]*/cmdline; do tr "\\0" " " <$p; echo; done');
    expect(left).not.toMatch(/sleep 1000|\bon\b/);
  });
  if (options.whole === false) return;

  it('a step that kills its runner is a failure', async () => {
    const failure = await runSteps(container, [step('kill', 'kill -9 $PPID'), step('never', 'true')], NEVER);
    expect(failure).toMatchObject({ step: 'kill, or never' });
  });

  it('each sandbox has the steps of its role, and the agent’s a working activation', async () => {
    const environment = InstanceEnvironment.parse({
      activate: 'MARK=1',
      setup: [
        { name: 'both', script: 'echo both >>/srv/roles' },
        { name: 'agent', script: 'echo agent >>/srv/roles', roles: ['agent'] },
        { name: 'clean', script: 'echo clean >>/srv/roles', roles: ['evaluation'] },
      ],
    });
    await setUp(container, environment, NEVER);
    expect(await outputOf('cat /srv/roles')).toBe('both\nagent');
    await using clean = await open({ role: 'evaluation' });
    await setUp(clean, environment, NEVER);
    expect(await printed(clean, 'cat /srv/roles')).toBe('both\nclean\n');
    const broken = { ...environment, activate: 'source /nowhere/activate' };
    await expect(setUp(container, broken, NEVER)).rejects.toMatchObject({
      failureClass: 'setup_failed',
      message: expect.stringMatching(
        /step "activate" in the agent sandbox ended with exit code 1: .*nowhere/,
      ),
    });
  });

  it('hides files, folders, links and the targets of links', async () => {
    await sh(container, REPOSITORY);
    await sh(
      container,
      `mkdir -p /srv/tests/deep /srv/real; echo a >/srv/tests/deep/a; echo b >/srv/real/b; echo c >'/srv/odd name'
      ln -s /srv/real /srv/hop; ln -s /srv/hop linked; ln -s /gone /srv/broken`,
    );
    const inside = ['tests', 'odd name', 'broken', 'never/there'].map((name) => `/srv/${name}`);
    const snapshot = await conceal({ hidden: [...inside, `${container.workdir}/linked`] });
    expect(await outputOf('ls /srv; ls -a')).not.toMatch(/tests|real|odd name|broken|linked/);
    expect(await patchOf(snapshot)).toBe('');
  });

  it('fails when a path cannot be hidden', async () => {
    await sh(container, REPOSITORY);
    const refused = (path: string) =>
      expect(conceal({ hidden: [path] })).rejects.toMatchObject({ failureClass: 'setup_failed' });
    await refused('/proc/version');
    await refused(container.workdir);
    await refused('/');
    // The path was committed and removed, but is still in the history.
    await sh(container, 'git rm -qf pkg/b.py; git -c user.name=n -c user.email=e commit -qm rm');
    await refused(`${container.workdir}/pkg/b.py`);
    await conceal({ hidden: [`${container.workdir}/pkg/b.py`], history: 'replaced' });
  });

  /** Script that prints every ref and object of the repository, reachable or not. */
  const EVERYTHING = `git log --all --format=%s%n%an%n%ad; git for-each-ref; git remote -v; git stash list; git reflog --all
    git fsck --lost-found --unreachable --no-reflogs; find / -xdev -path /proc -prune -o -name '*.pack' -print -o -name ORIG_HEAD -print
    for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o; done; grep -ra 'the secret' .git || true`;

  it('a replaced history reveals nothing, and the patch is unchanged', async () => {
    await sh(container, REPOSITORY);
    await sh(
      container,
      `g() { git -c user.name=n -c user.email=e@x "$@"; }
      mkdir .git/hooks -p; printf '#!/bin/sh\\necho ran >>/srv/hook\\n' >.git/hooks/reference-transaction; chmod +x .git/hooks/*
      mkdir -p /srv/super /srv/lender; cp -a .git/objects /srv/lender/objects
      echo 'the secret, committed' >fix.py; g add fix.py; g commit -qm 'the secret subject'; g tag -a v2 -m 'the secret tag'
      g rm -q fix.py; g commit -qm 'undo'; git pack-refs --all; git repack -qad
      echo 'the secret, loose' | git hash-object -w --stdin; g checkout -q -b side; echo 'the secret, aside' >s.py; g add s.py
      g stash -q; git notes add -m 'the secret note' 2>/dev/null || g notes add -m 'the secret note'; g checkout -q main
      git worktree add -q -b aside /srv/beside HEAD~1; git remote add origin https://example.com/the-secret
      echo /srv/lender/objects >.git/objects/info/alternates; printf 'pkg/built/\\n' >>.git/info/exclude
      mkdir pkg/built; echo built >pkg/built/x; echo 'left by the setup' >>pkg/a.py; rm -f /srv/hook`,
    );
    const snapshot = await conceal({ history: 'replaced' });
    const found = await outputOf(EVERYTHING);
    expect(found).not.toMatch(/secret|builder's commit|unreachable|dangling|stash|origin|side/);
    expect(found).toContain('Initial commit\nswefarm\n');
    expect(
      await outputOf(
        'git rev-list --all --count; git branch; git status --porcelain; ls -d /srv/lender/objects /srv/hook 2>&1 | grep -v cannot || true',
      ),
    ).toBe('1\n* main');
    expect(await outputOf('git show HEAD:pkg/a.py HEAD:notes.txt')).toMatch(
      /left by the setup\nuntracked at start/,
    );
    await sh(
      container,
      `echo mine >>pkg/a.py; git -c user.name=n -c user.email=e commit -qam mine; echo more >>pkg/a.py; git branch -D x 2>/dev/null || true
      git reset -q --hard; git -c user.name=n -c user.email=e commit -q --amend --allow-empty -m amended; echo last >>pkg/b.py
      git reflog expire --expire=now --all; git gc -q --prune=now`,
    );
    const patch = await patchOf(snapshot);
    expect(patch).toContain('+mine\n');
    expect(patch).toContain('+last\n');
    expect(patch).not.toMatch(/\+left by the setup|secret/);
  });

  it('each instance of an image loses its own later history, in any order', async () => {
    const git = 'git -c user.name=n -c user.email=e@x';
    const commits = `git init -q -b main .; echo 1 >a.py; git add -A; ${git} commit -qm one; echo 'the future' >>a.py; ${git} commit -qam two`;
    const given = spec(await subject().runtime.ensureImage(subject().image, NEVER));
    const cleanPlans = new Set<string>();
    const seen = async (...scripts: string[]): Promise<string> => {
      const setup = [commits, ...scripts].map((script, at) => step(`step ${at}`, script));
      const environment = InstanceEnvironment.parse({ workdir: given.workdir, setup });
      const log = { debug: () => undefined };
      await using sandbox = await prepareSandbox(
        { spec: { ...given, owner: { ...given.owner, rollout_id: newId() } }, environment, activate: '' },
        { runtime: subject().runtime, cleanPlans, log, signal: NEVER },
      );
      await sandbox.pruned;
      const look = `for o in $(git cat-file --batch-all-objects --batch-check='%(objectname)'); do git cat-file -p $o; done | grep -ac 'the future' || true`;
      return (await printed(sandbox.container, look)).trim();
    };
    const older = 'git reset -q --hard HEAD~1';
    expect([await seen(), await seen(older), await seen(older), await seen()]).toEqual(['1', '0', '0', '1']);
    // Only the plan without a reset is known to have no unreachable objects.
    expect(cleanPlans.size).toBe(1);
  });

  it.each([
    [
      'a linked work tree',
      `git init -q -b main /srv/main; cd /srv/main; git -c user.name=n -c user.email=e commit -q --allow-empty -m 'the secret'; git worktree add -q --force -b own WORK; cd WORK`,
    ],
    [
      'a submodule',
      `mkdir -p /srv/super/.git/modules; git init -q -b main --separate-git-dir /srv/super/.git/modules/work WORK; cd WORK; echo 'the secret' >x; git add x
      git -c user.name=n -c user.email=e commit -qm one; git rm -q x; git -c user.name=n -c user.email=e commit -qm two
      git config core.worktree WORK`,
    ],
  ])('%s becomes a separate repository', async (_what, script) => {
    await sh(container, script.replaceAll('WORK', container.workdir));
    await sh(container, 'echo here >here.txt');
    const snapshot = await conceal({ history: 'replaced' });
    expect(await outputOf(EVERYTHING)).not.toMatch(/secret/);
    expect(await outputOf('test -d .git; git log --format=%s; git status --porcelain; git ls-files')).toMatch(
      /^Initial commit\n(?:.*\n)*here\.txt/,
    );
    await sh(container, 'echo new >>here.txt');
    expect(await patchOf(snapshot)).toContain('+new');
  });
}
