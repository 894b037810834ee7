/** Rollouts with a toolset, on real sandboxes: the model edits by tools, and the result tells its tools and texts. */
import { readFileSync } from 'node:fs';
import { AgentConfig, parseYaml, Toolset } from '@swefarm/shared';
import type { TurnInput } from '@swefarm/testkit';
import { describe, expect, test, vi } from 'vitest';
import { rollOut, useMachine } from './installedscene.ts';
import { RUNTIMES } from './matrix/runtimes.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const EDIT = new URL('../../runs/data/toolsets/edit.yaml', import.meta.url);
const toolset = [Toolset.parse(parseYaml(readFileSync(EDIT, 'utf8')))];
const agent = AgentConfig.parse({ action: 'tool', toolset, prompts: [{ name: 'own' }] });
const edit = (args: Record<string, string>): TurnInput => ({
  tool_calls: [{ name: 'str_replace_editor', arguments: args }],
});
const PATH = '/testbed/answer.txt';
const SUBMIT: TurnInput = { tool_calls: [{ name: 'submit', arguments: {} }] };

describe.each(RUNTIMES)('on %s', (runtime) => {
  const machine = useMachine(runtime);

  test('edits of the model are its patch, and the result names its variant', async () => {
    const turns = [
      edit({ command: 'view', path: '/testbed' }),
      edit({ command: 'str_replace', path: PATH, old_str: '41', new_str: '40' }),
      edit({ command: 'undo_edit', path: PATH }),
      edit({ command: 'str_replace', path: PATH, old_str: '41', new_str: '42' }),
      edit({ command: 'create', path: '/root/none/x', file_text: 'x' }),
      SUBMIT,
    ];
    const trial = await rollOut(await machine(), { mini: true, agent, turns });
    await trial.attempt();
    const result = await trial.result();
    expect(result).toMatchObject({
      outcome: 'judged',
      resolved: true,
      exit_status: 'submitted',
      turns: 6,
      failure: null,
    });
    expect(result?.variant).toMatchObject({
      prompts: 'own',
      toolset: 'edit',
      toolset_hash: expect.stringMatching(/^\w{64}$/),
    });
    const stored = await trial.stored();
    const shown =
      stored?.trajectory?.messages.filter(({ role }) => role === 'tool').map(({ content }) => content) ?? [];
    expect(shown[0]?.split('\n').slice(1)).toContain(PATH);
    expect(shown[1]).toContain('     1\t40');
    expect(shown[2]).toContain('     1\t41');
    expect(shown[4]).toContain('does not exist');
    expect(stored?.patch).toContain('+42');
    expect(await trial.left()).toBe(0);
  });

  test('a failed submit gets feedback, a reset tree and another try; the last submit counts', async () => {
    const turns = [
      SUBMIT,
      edit({ command: 'str_replace', path: PATH, old_str: '41', new_str: '40' }),
      edit({ command: 'create', path: '/testbed/new.txt', file_text: 'new' }),
      SUBMIT,
      edit({ command: 'view', path: '/testbed' }),
      edit({ command: 'str_replace', path: PATH, old_str: '41', new_str: '42' }),
      SUBMIT,
    ];
    const feedback = { max_submits: 5, feedback: 'tests', after_submit: 'reset' } as const;
    const trial = await rollOut(await machine(), { mini: true, agent: { ...agent, ...feedback }, turns });
    await trial.attempt();
    const result = await trial.result();
    expect(result).toMatchObject({ outcome: 'judged', resolved: true, turns: 7, submits: 3, failure: null });
    const stored = await trial.stored();
    const shown =
      stored?.trajectory?.messages.filter(({ role }) => role === 'tool').map(({ content }) => content) ?? [];
    expect(shown[0]).toMatch(/^Tests failed: the patch is empty/);
    expect(shown[3]).toMatch(/not all of them pass\.\n- t\.py::test_a\n\nThe repository is reset .* 3 more/);
    expect(shown[4]).not.toContain('new.txt');
    expect(shown[5]).toContain('     1\t42');
    expect(stored?.patch).not.toContain('new.txt');
    expect(await trial.left()).toBe(0);
  });

  test('at the last submit there is no feedback, and nothing tells the names of tests', async () => {
    const wrong = edit({ command: 'str_replace', path: PATH, old_str: '41', new_str: '40' });
    const trial = await rollOut(await machine(), {
      ...{ mini: true, agent: { ...agent, max_submits: 2 }, turns: [wrong, SUBMIT, SUBMIT] },
    });
    await trial.attempt();
    expect(await trial.result()).toMatchObject({
      resolved: false,
      reward: 0,
      submits: 2,
      exit_status: 'submitted',
    });
    const messages = JSON.stringify((await trial.stored())?.trajectory?.messages);
    expect(messages).toContain('left as it is. You have 1 more');
    expect(messages).not.toContain('test_a');
  });
});
