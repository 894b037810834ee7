import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../test/temporaryfolder.ts';
import { type Asked, openChooser } from './choice.ts';
import { type Conversation, loadScript, readScript } from './script.ts';

const folder = temporaryFolder('script');
const file = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

describe('a script file', () => {
  it('is YAML or JSON, with defaults filled in', () => {
    const yaml = file(
      'a.yaml',
      'conversations:\n  - match: flask\n    variants:\n      - - {command: ls, repeat: 2}\n        - {submit: true}\n',
    );
    expect(loadScript(yaml).conversations[0]?.variants[0]).toEqual([
      { command: 'ls', repeat: 2 },
      { submit: true, repeat: 1 },
    ]);
    const json = file('a.json', '{"conversations":[{"variants":[[{"text":"no"}]]}]}');
    expect(loadScript(json)).toMatchObject({
      fence: 'bash',
      conversations: [{ match: '', after: 'repeat_last' }],
    });
  });

  it.each([
    ['a turn that says two things', [{ text: 'a', command: 'b' }], /variants\.0\.0: a turn says one thing/],
    ['a turn that says nothing', [{ thought: 'hm' }], /variants\.0\.0: a turn needs one of/],
    ['an unknown key', [{ comand: 'ls' }], /variants\.0\.0: .*comand/],
    ['no turn', [], /variants\.0: /],
  ])('names the place of %s', (_, turns, expected) => {
    expect(() => readScript({ conversations: [{ variants: [turns] }] }, 'x.yaml')).toThrow(expected);
  });

  it('refuses weights that do not fit, a broken expression, broken YAML and a missing file', () => {
    const turns = [{ command: 'ls' }];
    const reading = (more: object) => () => readScript({ conversations: [{ variants: [turns], ...more }] });
    expect(reading({ weights: [0] })).toThrow(/expected 1 weights/);
    expect(reading({ match: '/(/' })).toThrow(/regular expression/);
    expect(() => loadScript(file('b.yaml', 'a: [1'))).toThrow(/policy script .*b\.yaml/);
    expect(() => loadScript(join(folder, 'none.json'))).toThrow(/none\.json.*ENOENT/);
  });
});

describe('the choice of a turn', () => {
  const never = () => false;
  const choose = (conversations: Partial<Conversation>[]) => {
    const chooser = openChooser(readScript({ conversations }));
    return (asked: Partial<Asked>, sounds: Parameters<typeof chooser.choose>[1] = never) =>
      chooser.choose(
        {
          rollout: undefined,
          firstUser: 'fix flask',
          turn: 0,
          firstAssistant: null,
          lastMessage: '',
          opening: '',
          ...asked,
        },
        sounds,
      );
  };
  const message = (...commands: string[]) => commands.map((command) => ({ command, repeat: 1 }));

  it('takes the first conversation whose match and instance fit, or none', () => {
    const at = choose([
      { match: 'django', variants: [message('a')] },
      { match: '/FLASK$/i', instance: 'pallets__flask-1.2', variants: [message('b')] },
      { match: '/FLASK$/i', variants: [message('c')] },
    ]);
    expect(at({ rollout: 'run.pallets__flask-1.2.0' })?.turn.command).toBe('b');
    expect(at({ rollout: 'run.other.0' })?.turn.command).toBe('c');
    expect(at({ firstUser: 'numpy' })).toBeNull();
  });

  it('rotates variants by the index of the rollout, by weight', () => {
    const at = choose([{ variants: [message('a'), message('b'), message('c')], weights: [2, 1, 0] }]);
    const received = [0, 1, 2, 3, 4].map((index) => at({ rollout: `r.i.${index}` })?.turn.command);
    expect(received).toEqual(['a', 'b', 'a', 'a', 'b']);
  });

  it('follows the history through its turns, also repeated ones, then stays or restarts', () => {
    const turns = [{ command: 'a', repeat: 2 }, ...message('b')];
    const stays = choose([{ variants: [turns] }]);
    const restarts = choose([{ variants: [turns], after: 'restart' }]);
    const received = (at: typeof stays) =>
      [0, 1, 2, 3, 4].map((turn) => at({ turn, rollout: 'r.i.0' })?.turn.command).join('');
    expect(received(stays)).toBe('aabbb');
    expect(received(restarts)).toBe('aabaa');
  });

  it('takes the first conversation whose last message and opening fit', () => {
    const at = choose([
      { last: '/summar/i', variants: [message('s')] },
      { opening: 'SUBTASK', variants: [message('t')] },
      { last: 'output', match: 'flask', variants: [message('b')] },
    ]);
    expect(at({ lastMessage: 'user\nSummarise.' })?.turn.command).toBe('s');
    expect(at({ lastMessage: 'tool\noutput 1' })?.turn.command).toBe('b');
    expect(at({ lastMessage: 'tool\noutput 1', opening: 'user\nSUBTASK' })?.turn.command).toBe('t');
    expect(at({ lastMessage: 'tool\nnothing' })).toBeNull();
  });

  it('numbers requests of a rollout where the conversation asks for it', () => {
    const at = choose([{ number: 'requests', variants: [message('a', 'b', 'c')] }]);
    const received = ['r.i.0', 'r.i.0', 'r.i.1', 'r.i.0'].map(
      (rollout) => at({ turn: 0, rollout })?.turn.command,
    );
    expect(received).toEqual(['a', 'b', 'a', 'c']);
  });

  it('without a rollout id goes round, and knows a conversation again by its first answer', () => {
    const at = choose([{ variants: [message('a', 'a2'), message('b', 'b2')] }]);
    expect([at({}), at({}), at({})].map((chosen) => chosen?.turn.command)).toEqual(['a', 'b', 'a']);
    const later = at({ turn: 1, firstAssistant: 'b' }, (turn, output) => turn.command === output);
    expect(later?.turn.command).toBe('b2');
  });
});
