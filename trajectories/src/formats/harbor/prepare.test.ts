/** Runs the scripts that prepare the agent's tree and take the patch. The repository is in a temporary folder. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Instance, InstancePlan } from '@swefarm/shared';
import { afterEach, describe, expect, test } from 'vitest';
import { taskFiles } from './task.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const INSTANCE = {
  ...{ instance_id: 'a__b-1', repo: 'a/b', base_commit: 'f00', problem_statement: '', image: 'i' },
  ...{ family: 'custom', FAIL_TO_PASS: [], PASS_TO_PASS: [] },
};
const PLAN = { grader: 'x', script: 'true', outcomes: { from: 'exit_code' }, verdict: { rule: 'exit_code' } };

/** Makes a repository with the commands of `setup`, and the task's files beside it. Returns functions that run the task's scripts. */
function repository(setup: string, environment: object = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'swefarm-harbor-'));
  folders.push(folder);
  const tree = join(folder, 'tree');
  const home = join(folder, 'home');
  mkdirSync(tree);
  mkdirSync(home);
  const env = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: '1' };
  const bash = (script: string, cwd = tree): string =>
    execFileSync('bash', ['-c', script], { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  const write = (name: string, text: string): void => {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  };
  bash(`git init -q . && git config user.name x && git config user.email x@x && echo 1 >a.py && git add a.py
    git commit -qm start; ${setup}`);
  const instance = Instance.parse({
    ...INSTANCE,
    environment: { workdir: tree, activate: '', ...environment },
  });
  const options = { network: 'none', agentSeconds: 9, testSeconds: 9 } as const;
  const files = taskFiles(instance, InstancePlan.parse(PLAN), options);
  const here = (text: string): string =>
    text.replaceAll('/var/lib/swefarm', join(folder, 'start')).replaceAll('/logs', join(folder, 'logs'));
  for (const [name, text] of Object.entries(files)) write(name, here(text));
  // Harbor creates this folder.
  mkdirSync(join(folder, 'logs/artifacts'), { recursive: true });
  const toml = readFileSync(join(folder, 'task.toml'), 'utf8');
  const collect: string = JSON.parse(/^command = (.*)$/m.exec(toml)?.[1] ?? '');
  return {
    folder,
    bash,
    prepare: () => bash(`bash ${folder}/environment/prepare/prepare.sh`),
    collect: () => {
      bash(collect, folder);
      return readFileSync(join(folder, 'logs/artifacts/patch.diff'), 'utf8');
    },
  };
}

/** Runs the commands `agent` in a prepared repository. Returns the patch that the collect hook writes. */
function patchOf(agent: string, setup = '', environment: object = {}): string {
  const made = repository(setup, environment);
  made.prepare();
  made.bash(
    agent
      .replaceAll('START', join(made.folder, 'start/start.git'))
      .replaceAll('LOGS', join(made.folder, 'logs')),
  );
  return made.collect();
}

const names = (patch: string): string[] =>
  Array.from(patch.matchAll(/^diff --git a\/(.*) b\//gm), ([, name = '']) => name);

describe('the collect hook', () => {
  test.each([
    ['an empty repository', 'mkdir r && git init -q r; echo 2 >a.py'],
    [
      'a repository with a commit',
      'git init -q r && cd r && touch x && git add x && git -c user.name=x -c user.email=x commit -qm x; echo 2 >../a.py',
    ],
    ['a folder in the place of the patch', 'mkdir -p LOGS/artifacts/patch.diff/x; echo 2 >a.py'],
    ['a lock of git', 'touch START/index.lock; echo 2 >a.py'],
    ['a pipe', 'mkfifo p; echo 2 >a.py'],
  ])('writes the changes of an agent that left %s', (_, agent) => {
    expect(names(patchOf(agent))).toEqual(['a.py']);
  });

  test.each([
    ['the git folder of the start', 'rm -rf START; echo 2 >a.py'],
    ['the whole tree', 'rm -rf "$PWD"'],
    ['an object of the start', 'rm -rf START/objects; echo 2 >a.py'],
  ])('writes an empty patch for an agent that removed %s', (_, agent) => {
    expect(patchOf(agent)).toBe('');
  });

  test.each([
    ['removes rules', 'rm .gitignore'],
    ['inverts rules', "echo '!*.bin' >>.gitignore; echo '!data/' >>.gitignore"],
  ])('omits files that were ignored at the start if the agent %s', (_, agent) => {
    const setup =
      'printf "*.bin\\ndata/\\n" >.gitignore; git add .gitignore; git commit -qm i; mkdir data; touch x.bin data/y';
    expect(names(patchOf(`${agent}; echo 2 >a.py; echo 1 >new.py`, setup))).toEqual([
      '.gitignore',
      'a.py',
      'new.py',
    ]);
  });

  test.each(['pruned', 'replaced'])('omits files of .git/info/exclude with %s history', (history) => {
    const setup = 'echo local.txt >>.git/info/exclude; echo 1 >local.txt';
    const agent = 'echo 2 >local.txt; echo 2 >a.py; git status --porcelain >status';
    const patch = patchOf(agent, setup, { history });
    expect(names(patch)).toEqual(['a.py', 'status']);
    expect(patch).not.toContain('local.txt');
  });

  test('omits build outputs except those that git tracked at the start', () => {
    const setup = 'echo 1 >lib.a; git add -f lib.a; git commit -qm lib';
    const agent = 'echo 2 >lib.a; touch n.a .coverage; mkdir -p .venv build; touch .venv/x build/own.py';
    expect(names(patchOf(agent, setup))).toEqual(['build/own.py', 'lib.a']);
  });

  test('has the line ends of the files, whatever the configuration of git', () => {
    const setup =
      'git config --global core.autocrlf input; printf "1\\r\\n" >c.txt; git -c core.autocrlf=false add c.txt; git commit -qm c';
    const patch = patchOf('printf "1\\r\\n2\\r\\n" >c.txt', setup);
    expect(patch).toContain('\n 1\r\n+2\r\n');
  });

  test('omits the files of a repository whose .git the agent removed', () => {
    const setup =
      'git init -q "s [x]" && cd "s [x]" && touch f && git add f && git -c user.name=x -c user.email=x commit -qm x';
    expect(names(patchOf('rm -rf "s [x]/.git"; echo 2 >a.py', setup))).toEqual(['a.py']);
  });
});

describe('hiding', () => {
  test('a hidden path that contains the work tree is refused', () => {
    const made = repository('');
    writeFileSync(join(made.folder, 'environment/prepare/hidden'), `${made.folder}\n`);
    expect(() => made.prepare()).toThrow(/holds the work tree/);
    expect(made.bash('cat a.py')).toBe('1\n');
  });

  test('pattern characters in a hidden path match only themselves', () => {
    const made = repository('touch "x*.py" xy.py; git add xy.py; git commit -qm y');
    writeFileSync(join(made.folder, 'environment/prepare/hidden'), `${made.folder}/tree/x*.py\n`);
    made.prepare();
    expect(made.bash('ls')).toBe('a.py\nxy.py\n');
  });
});
