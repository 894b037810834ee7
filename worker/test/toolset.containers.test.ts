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
const edit = (args: object): TurnInput => ({ tool_calls: [{ name: 'str_replace_editor', arguments: args }] });
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
});
