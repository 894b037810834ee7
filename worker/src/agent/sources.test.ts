import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PromptSet } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { expect, test } from 'vitest';
import { localRun } from '../../test/agent/localrun.ts';
import { depsOf, scriptedPolicy, scriptedShell, scriptedTask } from '../../test/agent/scripted.ts';
import { runMiniAgent } from './loop.ts';
import { changedFiles } from './sources.ts';

const PATCH = [
  ...['--- a/pkg/b c.py\t', '+++ b/pkg/b c.py\t', '@@ -1 +1 @@', '-b', '+c'],
  ...['--- /dev/null', '+++ b/new.py', '@@ -0,0 +1 @@', '+n'],
  ...['--- a/a.py', '+++ /dev/null', '@@ -1 +0,0 @@', '-a', ''],
].join('\n');

test('the files that a patch changes or removes, not those that it adds', () => {
  expect(changedFiles(PATCH)).toEqual(['pkg/b c.py', 'a.py']);
});
test('the first prompt shows readmes and code in the form of SWE-bench', async () => {
  const workdir = temporaryFolder('sources');
  mkdirSync(join(workdir, 'pkg'));
  mkdirSync(join(workdir, 'readme.d'));
  writeFileSync(join(workdir, 'pkg/b c.py'), 'b\r\nend\n');
  writeFileSync(join(workdir, 'a.py'), 'a');
  writeFileSync(join(workdir, 'README.md'), '# It');
  const set = PromptSet.parse({
    name: 's',
    sources: { readmes: true, code: 'oracle' },
    templates: { instance: '{{readmes}}|{{code}}' },
  });
  const { instance, config } = scriptedTask({ prompts: [set], action: 'patch' });
  const shell = {
    ...scriptedShell(() => undefined),
    run: (script: string, { maxOutputBytes }: { maxOutputBytes: number }) =>
      localRun(`cd ${workdir}\n${script}`, maxOutputBytes),
  };
  const task = { instance: { ...instance, patch: PATCH }, config, workdir };
  const end = await runMiniAgent(task, depsOf(scriptedPolicy(['<patch>\nx\n</patch>']), shell));
  expect(end.trajectory.messages[1]?.content).toBe(
    '[start of README.md]\n1 # It\n[end of README.md]|[start of a.py]\n1 a\n[end of a.py]\n[start of pkg/b c.py]\n1 b\n2 end\n3 \n[end of pkg/b c.py]',
  );
  expect(end.exit_status).toBe('submitted');
});
