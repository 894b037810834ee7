import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AgentConfig } from '@swefarm/shared';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, expect, test } from 'vitest';
import { openPrompts } from './prompts.ts';

const open = (config: Record<string, unknown>) => openPrompts(AgentConfig.parse(config), '/testbed');
const TASK = { problem_statement: 'It breaks: {{x}}', instance_id: 'i', repo: 'r', hints_text: '' };
let folder: string;
beforeEach(async () => {
  folder = temporaryFolder('prompts');
});

test('the shipped set has the problem, the work directory and the way to submit', async () => {
  const text = (await open({ step_limit: 77 })).render('instance', TASK);
  expect(text).toContain('It breaks: {{x}}');
  expect(text).toContain('/testbed');
  expect(text).toContain('at most 77 answers');
  expect(text).toContain('echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT');
});
test('in tool mode the prompts mention tools and not blocks', async () => {
  const prompts = await open({ action: 'tool' });
  const texts = [
    prompts.render('system', TASK),
    prompts.render('instance', TASK),
    prompts.render('format_error', { reason: 'r' }),
  ];
  for (const text of texts) {
    expect(text).not.toContain('```');
    expect(text).toContain('submit_solution');
  }
});
test('an override replaces both variants; an override of the tool variant replaces that one', async () => {
  const system = { system: 'S {{workdir}}' };
  expect((await open({ action: 'tool', prompt_overrides: system })).render('system', TASK)).toBe(
    'S /testbed',
  );
  const both = { system_tool: 'T', ...system };
  expect((await open({ action: 'tool', prompt_overrides: both })).render('system', TASK)).toBe('T');
  expect((await open({ prompt_overrides: both })).render('system', TASK)).toBe('S /testbed');
});
test('a folder replaces the templates that it has', async () => {
  await writeFile(join(folder, 'elision.md'), '~{{left_out}}~\n');
  await writeFile(join(folder, 'README.md'), 'about {{anything}}');
  const prompts = await open({ prompts: folder });
  expect(prompts.render('elision', { left_out: 5 })).toBe('~5~');
  expect(prompts.render('system', TASK)).toContain('```bash');
});
test.each([
  ['an unknown set', { prompts: 'nowhere' }, /cannot read folder/],
  ['no name and no path', { prompts: 'You are a bot.' }, /neither a shipped set/],
  [
    'an unknown override',
    { prompt_overrides: { sytem: 'x' } },
    /prompt_overrides\.sytem: no such template; known: system/,
  ],
  [
    'an unknown name',
    { prompt_overrides: { system: '{{patch}}' } },
    /prompt_overrides\.system, line 1: unknown name/,
  ],
])('%s is an error before the first turn', async (_, config, message) => {
  await expect(open(config)).rejects.toThrow(message);
});
test('an unknown file in a folder is an error', async () => {
  await writeFile(join(folder, 'instance_template.md'), 'x');
  await expect(open({ prompts: folder })).rejects.toThrow(/instance_template\.md: no such template/);
});
