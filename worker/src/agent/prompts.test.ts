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

const MINI = {
  name: 'swebench',
  engine: 'jinja',
  templates: {
    system: 'You.',
    instance: 'Solve {{task}} in {{cwd}} on {{ machine }}',
    observation:
      '{% if output.exception_info -%}\n<exception>{{output.exception_info}}</exception>\n{% endif -%}\n<returncode>{{output.returncode}}</returncode>\n{% if output.output | length < 10 -%}\n<output>\n{{ output.output -}}\n</output>\n{%- else -%}\n{{ output.output[:5] }}~{{ output.output | length - 10 }}~{{ output.output[-5:] }}\n{%- endif -%}',
    format_error:
      '{% if finish_reason is defined and finish_reason == "length" %}cut{% else %}{{error}}{% endif %}',
    token_cut:
      '{% if finish_reason is defined and finish_reason == "length" %}cut{% else %}{{error}}{% endif %}',
  },
};
test('templates of mini-swe-agent get its values, and shorten the output themselves', async () => {
  const prompts = await open({ prompts: [MINI] });
  expect(prompts.render('instance', { ...TASK, readmes: '', code: '' })).toBe(
    'Solve It breaks: {{x}} in /testbed on x86_64',
  );
  const observed = (output: string, notes = '') =>
    prompts.render('observation', { returncode: 1, output, notes });
  expect([prompts.shortens, observed('ab\n')]).toEqual([
    true,
    '<returncode>1</returncode>\n<output>\nab\n</output>',
  ]);
  expect(observed('a'.repeat(30), 'late')).toBe(
    '<exception>late</exception>\n<returncode>1</returncode>\naaaaa~20~aaaaa',
  );
  expect([prompts.render('format_error', { reason: 'why' }), prompts.render('token_cut')]).toEqual([
    'why',
    'cut',
  ]);
});
test("a toolset's texts are replaced by a prompt set's, and name the tools", async () => {
  const tools = ['bash', 'submit'].map((name) => ({
    ...{ name, description: '', run: name },
    parameters: { type: 'object', properties: { command: { type: 'string' } } },
  }));
  const own = { name: 'own', tools, prompts: { system: '{{tools}}; {{submit_tool}}', collapse: 'x' } };
  const prompts = await open({
    action: 'tool',
    toolset: [own],
    prompts: [{ name: 'p', templates: { collapse: 'y' } }],
  });
  expect([prompts.render('system', TASK), prompts.render('collapse', { count: 1 })]).toEqual([
    'bash and submit; submit',
    'y',
  ]);
});
