import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import { notesOnMini } from './miniconfig.ts';
import { promptSetsOf, toolsetsOf, withSets } from './sets.ts';

let folder: string;
beforeEach(() => {
  folder = temporaryFolder('sets');
});
const file = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};
const PLAIN = 'templates: {system: "You are {{repo}}."}\n';
const OWN = 'tools: [{name: go, description: d, parameters: {type: object}, run: submit}]';
const names = (sets: unknown) =>
  (sets as { name: string; weight: number }[]).map(({ name, weight }) => [name, weight]);

describe('toolsets', () => {
  test('toolsets of swefarm are read by name, files by path, with weights', () => {
    const own = file('own.yaml', OWN.replace('go', 'submit'));
    expect(names(toolsetsOf(`edit=0.7,${own}=0.3`))).toEqual([
      ['edit', 0.7],
      ['own', 0.3],
    ]);
    expect(toolsetsOf('edit')[0]?.tools.map(({ name }) => name)).toEqual([
      'bash',
      'str_replace_editor',
      'submit',
    ]);
    expect(names(toolsetsOf(['edit=0.5,bash', own]))).toEqual([
      ['edit', 0.5],
      ['bash', 1],
      ['own', 1],
    ]);
    expect(toolsetsOf('bash')[0]?.tools).toHaveLength(1);
  });
  test.each([
    [
      'a name that is not there',
      'edti',
      /--toolset .*edti: no such file, and no set of this name .*\(bash, edit\)/,
    ],
    ['the same name twice', 'edit,edit', /two sets have the name "edit"/],
    [
      'a file without a way to submit',
      OWN.replace('submit', 'think'),
      /expected a tool that runs bash or submit/,
    ],
    ['a submit by an unknown name', OWN, /tools\.0\.name: a tool that submits has one of the names submit/],
    [
      'two of one name',
      'tools: [&a {name: submit, description: d, parameters: {type: object}, run: submit}, *a]',
      /two tools have the name submit/,
    ],
    [
      'bash without its argument',
      'tools: [{name: b, description: d, parameters: {type: object}, run: bash}]',
      /expected properties command/,
    ],
    ['an unknown key', `${OWN.replace('go', 'submit')}\ntool: []`, /Unrecognized key: "tool"/],
    [
      'an unknown value in a text',
      `${OWN.replace('go', 'submit')}\nprompts: {system: "{{x}}"}`,
      /prompts\.system, line 1: unknown name/,
    ],
    [
      'a text cut by its comma',
      'tools: [{name: submit, description: d, parameters: {type: object, properties: {t: {description: a, b}}}, run: submit}]',
      /own\.yaml: tool submit: argument t: "b" has no value; quote/,
    ],
    ['a list', '[]', /expected a mapping/],
  ])('%s is refused', (_, given, message) => {
    const path = /[:[]/.test(given) ? file('own.yaml', given) : given;
    expect(() => toolsetsOf(path)).toThrow(message);
  });
});

describe('prompt sets', () => {
  test('names that only workers know are not changed; a mix is read', () => {
    const [a, b] = [file('a.yaml', PLAIN), file('b.yaml', 'templates: {}')];
    expect([promptSetsOf('default'), promptSetsOf('/shared/prompts')]).toEqual([
      'default',
      '/shared/prompts',
    ]);
    expect(names(promptSetsOf(`${a}=0.7,${b}=0.3`))).toEqual([
      ['a', 0.7],
      ['b', 0.3],
    ]);
    expect(names(promptSetsOf(`default=2,${a}`))).toEqual([
      ['default', 2],
      ['a', 1],
    ]);
  });
  test('swefarm includes the styles of SWE-bench', () => {
    expect(promptSetsOf('swebench-style-3')).toMatchObject([
      { action: 'patch', sources: { code: 'oracle' } },
    ]);
  });
  test('the file of mini-swe-agent is read unchanged', () => {
    const text = `
agent:
  system_template: You are a helpful assistant.
  instance_template: "Solve {{task}} in {{cwd}}"
  step_limit: 250
environment: {cwd: /testbed}
model:
  observation_template: "{% if output.exception_info %}<e>{{output.exception_info}}</e>{% endif %}{{ output.output[:5] }}"
  format_error_template: "{{error}}"
  model_name: m
`;
    const [set] = promptSetsOf(file('swebench.yaml', text)) as [Record<string, unknown>];
    expect(set).toMatchObject({ name: 'swebench', engine: 'jinja' });
    expect(Object.keys(set.templates as object)).toEqual([
      'system',
      'instance',
      'observation',
      'format_error',
      'token_cut',
    ]);
    expect(() => promptSetsOf(file('bad.yaml', text.replace('{{task}}', '{{tusk}}')))).toThrow(
      /bad\.yaml: templates\.instance, line 1: unknown name tusk/,
    );
  });
});

describe('limits of mini-swe-agent', () => {
  const mini = (name: string, more: string) =>
    file(
      name,
      `agent: {system_template: s, instance_template: i, ${more}}\nenvironment: {timeout: 30, cwd: /x}\n`,
    );
  test('the run uses them unless it sets its own, and other keys are named', () => {
    const prompts = mini('m.yaml', 'step_limit: 70, cost_limit: 3., wall_time_limit_seconds: 0');
    expect(withSets({ prompts }, [])).toMatchObject({ step_limit: 70, step_timeout: 30 });
    const agent = { prompts: `${prompts}=0.5`, step_limit: 9 };
    expect(withSets(agent, [])).toMatchObject({ step_limit: 9, step_timeout: 30 });
    expect(withSets(agent, [])).not.toHaveProperty('time_limit');
    expect(notesOnMini(agent)).toEqual([
      `--prompts ${prompts}: read as --step-limit as given, not 70, --step-timeout 30; not read: agent.cost_limit (give --cost-limit and --prices), agent.wall_time_limit_seconds, environment.cwd`,
    ]);
    expect(notesOnMini({ prompts: 'default' })).toEqual([]);
  });
  test('files with different limits are refused', () => {
    const prompts = [mini('m.yaml', 'step_limit: 70'), mini('n.yaml', 'step_limit: 80')].join();
    expect(() => withSets({ prompts }, [])).toThrow(/n\.yaml: step_limit is 80, and 70 .* give --step-limit/);
    expect(withSets({ prompts, step_limit: 5 }, [])).toMatchObject({ step_limit: 5 });
  });
});

describe('the settings of an agent', () => {
  const row = (more: object) => ({ instance_id: 'a__b-1', ...more });
  test('a toolset selects tool calls; a set may select the form of actions', () => {
    expect(withSets({ toolset: 'edit' }, [])).toMatchObject({ action: 'tool', toolset: [{ name: 'edit' }] });
    expect(withSets({ prompts: 'swebench-style-2' }, [])).toMatchObject({
      ...{ action: 'patch', patch_source: 'submission' },
    });
    expect(withSets({ action: 'fenced', prompts: '/shared' }, [row({})])).toEqual({
      ...{ action: 'fenced', prompts: '/shared' },
    });
  });
  test.each([
    [{ toolset: 'edit', action: 'fenced' }, {}, /ask for tool and fenced/],
    [{ toolset: 'edit', prompts: 'swebench-style-2' }, {}, /ask for patch and tool/],
    [{ toolset: 'edit' }, { prompts: 'swebench-style-2' }, /ask for patch and tool/],
    [{ toolset: 'edit', type: 'external' }, {}, /for agent mini, not for external/],
    [{ action: 'patch', patch_source: 'tree' }, {}, /no other source than submission/],
    [{ prompts: '/shared' }, { prompts: 'default' }, /rows name prompt sets/],
    [{}, { toolset: 'edti' }, /^a__b-1: toolset: the run has no set "edti"/],
  ])('%j with a row of %j is refused', (given, more, message) =>
    expect(() => withSets(given, [row(more)])).toThrow(message),
  );
  test('sets that rows and prompt sets name are added without weight', () => {
    const prompts = file('a.yaml', `${PLAIN}toolset: bash\n`);
    const agent = withSets({ prompts }, [row({}), row({ toolset: 'edit', prompts: 'default' })]);
    expect(agent.action).toBe('tool');
    expect(names(agent.prompts)).toEqual([
      ['a', 1],
      ['default', 0],
    ]);
    expect(names(agent.toolset)).toEqual([
      ['edit', 0],
      ['bash', 0],
    ]);
    expect(withSets(agent, [])).toEqual(agent);
    expect(withSets({ type: 'golden' }, [row({ toolset: 'edit' })])).toEqual({ type: 'golden' });
  });
});
