import type { Line, LineKind, Message, Trajectory } from '@swefarm/shared';
import { describe, expect, test } from 'vitest';
import { assistant, requestOf, result, system, user } from '../../test/agentrequest.ts';
import { card, recorderOptions, tool } from '../../test/options.ts';
import {
  callMessage,
  createScriptedPolicy,
  runs,
  type Scripted,
  type ScriptedPolicy,
  says,
} from '../../test/scriptedpolicy.ts';
import type { AgentRequest } from '../dialects/dialect.ts';
import type { Sign } from '../lines/answer.ts';
import type { RecorderOptions } from '../recorder.ts';
import { Recording } from './recording.ts';

const OPENING = [system('You fix code.'), user('Fix it.')];

/** Opens a recording whose policy gives the answers in order, and asks as an agent that gets every answer to its end. */
function open(answers: readonly Scripted[], more: Parameters<typeof recorderOptions>[1] = {}) {
  const left = [...answers];
  const policy = createScriptedPolicy(() => left.shift() ?? says('nothing more'));
  const recording = new Recording(recorderOptions(policy, more));
  const ask = async (
    messages: readonly Message[],
    request: Partial<AgentRequest> = {},
    sign: Sign = null,
  ) => {
    const asking = recording.ask(requestOf(messages, request), sign);
    const outcome = await asking.outcome;
    if (!('answer' in outcome)) throw new Error(`refused: ${outcome.refused}`);
    asking.delivered();
    return outcome.answer.message;
  };
  return { policy, recording, ask };
}

/** Returns all lines of a trajectory: the main line in the form of the others, and the others. */
function linesOf({
  line = 'L1',
  lines = [],
  messages,
  turns,
}: Trajectory): Pick<Line, 'id' | 'kind' | 'masked' | 'turns' | 'messages' | 'from'>[] {
  const main = { id: line, kind: 'main' as LineKind, masked: null, turns, messages, from: null };
  return [main, ...lines].sort((one, other) => Number(one.id.slice(1)) - Number(other.id.slice(1)));
}
const summary = (trajectory: Trajectory) =>
  linesOf(trajectory).map(({ id, kind, masked, turns, from }) => ({
    ...{ id, kind, masked, from: from && `${from.line}+${from.turns}` },
    matched: turns.map(({ request }) => request?.matched),
  }));

describe('matching', () => {
  test('a linear history is one line whose prompts continue', async () => {
    const { ask, policy, recording } = open([runs('a', 'ls'), runs('b', 'cat x'), says('done')]);
    const one = await ask(OPENING);
    const two = await ask([...OPENING, one, result('a-0', 'x')]);
    await ask([...OPENING, one, result('a-0', 'x'), two, result('b-0', 'text')]);
    const trajectory = recording.trajectory();
    expect(summary(trajectory)).toEqual([
      { id: 'L1', kind: 'main', masked: null, from: null, matched: ['first', 'continued', 'continued'] },
    ]);
    expect(trajectory.contiguous).toBe(true);
    expect(trajectory.lines).toBeUndefined();
    expect(trajectory.messages.map(({ role }) => role).join()).toBe(
      'system,user,assistant,tool,assistant,tool,assistant',
    );
    expect(trajectory.turns.map(({ message }) => message)).toEqual([2, 4, 6]);
    expect(Array.from(policy.samples[2]?.prompt ?? []).slice(0, policy.samples[1]?.prompt.length)).toEqual(
      Array.from(policy.samples[1]?.prompt ?? []),
    );
  });

  test('results of parallel calls are sorted by their calls', async () => {
    const { ask, policy } = open([runs('a', 'ls', 'pwd', 'id'), says('done')]);
    const one = await ask(OPENING);
    await ask([...OPENING, one, result('a-2', 'root'), result('a-0', 'x'), result('a-1', '/')]);
    expect(policy.samples[1]?.messages.slice(3).map((message) => message.tool_call_id)).toEqual([
      'a-0',
      'a-1',
      'a-2',
    ]);
  });

  test('equal ids of different answers become unique, and the policy gets its own', async () => {
    const { ask, policy, recording } = open([runs('same', 'ls'), runs('same', 'pwd'), says('done')]);
    const one = await ask(OPENING);
    const two = await ask([...OPENING, one, result('same-0', 'x')]);
    const id = two.tool_calls?.[0]?.id ?? '';
    expect(id).not.toBe('same-0');
    await ask([...OPENING, one, result('same-0', 'x'), two, result(id, '/')]);
    expect(policy.samples[2]?.messages.at(-1)).toEqual(result('same-0', '/'));
    expect(recording.trajectory().turns.map(({ request }) => request?.matched)).toEqual([
      'first',
      'continued',
      'continued',
    ]);
  });

  test.each<[string, (answer: Message) => Message]>([
    ['without reasoning', ({ reasoning_content: _thought, ...rest }) => rest],
    ['with spaces around the text', (answer) => ({ ...answer, content: ` ${answer.content}\n` })],
    ['with arguments in another order', (answer) => withArguments(answer, '{"b":2,"a":1}')],
  ])('an echo %s continues the answer', async (_, change) => {
    const scripted = {
      message: {
        ...withArguments(callMessage('x', 'ls'), '{"a":1,"b":2}'),
        content: 'I look',
        reasoning_content: 'Hm',
      },
    };
    const { ask, recording } = open([scripted, says('done')]);
    const one = await ask(OPENING);
    await ask([...OPENING, change(one), result('x-0', 'x')]);
    expect(summary(recording.trajectory()).map(({ matched }) => matched)).toEqual([['first', 'continued']]);
  });

  test.each<[string, (answer: Message) => Message]>([
    ['other text', (answer) => ({ ...answer, content: 'Got it.' })],
    ['other arguments', (answer) => withArguments(answer, '{"command":"rm"}')],
    ['another id', (answer) => ({ ...answer, tool_calls: callMessage('y', 'ls').tool_calls })],
    ['other reasoning', (answer) => ({ ...answer, reasoning_content: 'Hm?' })],
  ])('an echo with %s is rendered whole', async (_, change) => {
    const { ask, recording } = open([runs('x', 'ls'), says('done')]);
    const one = await ask(OPENING);
    await ask([...OPENING, change(one), result('x-0', 'x')]);
    expect(summary(recording.trajectory()).map(({ kind, matched }) => [kind, ...matched])).toEqual([
      ['main', 'first'],
      ['main', 'rewritten'],
    ]);
  });

  test('a call that could not be read may come back in another form', async () => {
    const { ask, policy, recording } = open(
      [{ message: withArguments(callMessage('x', 'ls'), '{"command":') }, says('done')],
      {
        card: card({ malformed: 'raw' }),
      },
    );
    const one = await ask(OPENING);
    expect(one.tool_calls?.[0]?.function.arguments).toBe('{"command":');
    const echo = {
      ...one,
      tool_calls: [{ id: 'x-0', type: 'function' as const, function: { name: 'invalid', arguments: '{}' } }],
    };
    await ask([...OPENING, echo, result('x-0', 'bad')]);
    expect(recording.trajectory().turns[1]?.request).toMatchObject({ matched: 'continued', repaired: true });
    expect(policy.samples[1]?.messages[2]).toEqual(one);
  });

  test('a call that cannot be read is given as a text by the rule of the card', async () => {
    const { ask, recording } = open([
      {
        message: withArguments(callMessage('x', 'ls'), '{"command":'),
        text: 'Hi <tool_call>{"command":</tool_call>',
      },
      { message: { ...callMessage('y', 'ls'), content: 'No such' } },
    ]);
    const one = await ask(OPENING, { tools: [tool('other')] });
    expect(one).toEqual(assistant('Hi <tool_call>{"command":</tool_call>'));
    const two = await ask([...OPENING, one, user('Call a tool.')], { tools: [tool('other')] });
    expect(two).toEqual(assistant('No such\nbash({"command":"ls"})'));
    expect(recording.trajectory().turns.map(({ request }) => request?.matched)).toEqual([
      'first',
      'continued',
    ]);
  });

  test('an answer to a request that forbids calls is a text, and not malformed', async () => {
    const { ask, recording } = open([runs('a', 'ls'), says('x')], { limits: { malformedInARow: 1 } });
    expect(await ask(OPENING, { callsAllowed: false })).toEqual(assistant('bash({"command":"ls"})'));
    await ask([...OPENING, user('Go on.')]);
    expect(recording.trajectory().turns).toHaveLength(1);
  });
});

describe('repeated requests', () => {
  test('an equal request in flight gets the same answer', async () => {
    const gate = Promise.withResolvers<Scripted>();
    const policy = createScriptedPolicy(() => gate.promise);
    const recording = new Recording(recorderOptions(policy));
    const [one, two] = [
      recording.ask(requestOf(OPENING), null),
      recording.ask(requestOf(OPENING, { stream: true }), null),
    ];
    gate.resolve(says('hello'));
    expect(await one.outcome).toEqual(await two.outcome);
    expect(policy.samples).toHaveLength(1);
    expect(recording.trajectory().turns[0]?.request).toMatchObject({ repeated: 1, delivered: false });
  });

  test('an undelivered answer is sent again; a delivered one is not', async () => {
    const { recording, policy } = open([says('one'), says('two')]);
    const first = recording.ask(requestOf(OPENING), null);
    await first.outcome;
    const again = recording.ask(requestOf(OPENING), null);
    expect(await again.outcome).toEqual(await first.outcome);
    again.delivered();
    const sibling = recording.ask(requestOf(OPENING), null);
    expect(await sibling.outcome).toMatchObject({ answer: { message: assistant('two') } });
    expect(policy.samples).toHaveLength(2);
  });

  test('of two answers with equal text, the one that the signature names is continued', async () => {
    const { ask, recording } = open([says('same'), says('same'), says('end')]);
    await ask(OPENING);
    await ask(OPENING);
    const id = recording.tree.answers[0]?.given.id ?? '';
    await ask([...OPENING, assistant('same'), user('on')], { answers: new Map([[2, id]]) });
    expect(recording.tree.answers.at(-1)?.match.parent?.number).toBe(1);
  });
});

describe('kinds of lines', () => {
  test('a dropped malformed answer is abandoned, and the line continues without it', async () => {
    const { ask, recording } = open([runs('a', 'ls'), says('no call'), runs('b', 'pwd'), says('end')]);
    const one = await ask(OPENING);
    const history = [...OPENING, one, result('a-0', 'x')];
    await ask(history);
    const three = await ask([...history, user('Call a tool.')]);
    await ask([...history, user('Call a tool.'), three, result('b-0', '/')]);
    expect(summary(recording.trajectory())).toEqual([
      { id: 'L1', kind: 'main', masked: null, from: null, matched: ['first', 'continued', 'continued'] },
      { id: 'L2', kind: 'abandoned', masked: 'abandoned', from: 'L1+1', matched: ['continued'] },
    ]);
  });

  test('if the first answer was dropped, the next one begins the main line', async () => {
    const { ask, recording } = open([says('no call'), runs('b', 'pwd')]);
    await ask(OPENING);
    await ask([...OPENING, user('Call a tool.')]);
    expect(recording.trajectory().line).toBe('L2');
    expect(summary(recording.trajectory()).map(({ kind }) => kind)).toEqual(['abandoned', 'main']);
  });

  test('a sub-agent has a line of its own beside the main line', async () => {
    const { ask, recording } = open([runs('a', 'task'), runs('s', 'ls'), says('found'), says('end')]);
    const one = await ask(OPENING);
    const prompt = [system('You search.'), user('Find it.')];
    const two = await ask(prompt, { tools: [tool('bash'), tool('grep')] });
    await ask([...prompt, two, result('s-0', 'x')], { tools: [tool('bash'), tool('grep')] });
    await ask([...OPENING, one, result('a-0', 'found')]);
    expect(summary(recording.trajectory())).toEqual([
      { id: 'L1', kind: 'main', masked: null, from: null, matched: ['first', 'continued'] },
      { id: 'L2', kind: 'subagent', masked: null, from: null, matched: ['other_prompt', 'continued'] },
    ]);
  });

  test('a title is a side line; a later prompt with its text identifies a summary', async () => {
    const text = 'The agent has looked at the file x and has found two mistakes in it.';
    const { ask, recording } = open([says('Fix code'), runs('a', 'ls'), says(text), says('end')]);
    await ask([system('Make a title.'), user('Fix it.')], { tools: [] });
    const one = await ask(OPENING);
    await ask([system('Summarise.'), user(JSON.stringify([one, 'x']))], { tools: [] });
    await ask([...OPENING, user(`What was done: ${text}`)]);
    expect(summary(recording.trajectory())).toEqual([
      { id: 'L1', kind: 'side', masked: 'side', from: null, matched: ['first'] },
      { id: 'L2', kind: 'main', masked: null, from: null, matched: ['other_prompt'] },
      { id: 'L3', kind: 'summary', masked: null, from: null, matched: ['other_prompt'] },
      { id: 'L4', kind: 'main', masked: null, from: null, matched: ['rewritten'] },
    ]);
  });

  test('a summary branches off its line; the first of two summaries is abandoned', async () => {
    const text = 'The parser was read, and its search for fields has to be mended.';
    const answers = [runs('a', 'ls'), says(text), says(`<analysis>x</analysis><summary>\n${text}</summary>`)];
    const { ask, recording } = open([...answers, says('end')]);
    const one = await ask(OPENING);
    const history = [...OPENING, one, result('a-0', 'x')];
    await ask([...history, user('Summarise.')]);
    await ask([...history, user('Summarise. Use the tags.')]);
    await ask([user(`Fix it. Earlier: ${text}`)]);
    expect(summary(recording.trajectory()).map(({ id, kind, from }) => [id, kind, from])).toEqual([
      ['L1', 'main', null],
      ['L2', 'abandoned', 'L1+1'],
      ['L3', 'summary', 'L1+1'],
      ['L4', 'main', null],
    ]);
  });

  test('an answer that another history contains with a complaint is no summary', async () => {
    const bad = 'I look at the parser and at its tests, and then I mend the search.';
    const { ask, recording } = open([runs('a', 'ls'), says(bad), runs('b', 'ls')]);
    const one = await ask(OPENING);
    await ask([...OPENING, one, result('a-0', 'x')]);
    const history = [...OPENING, assistant('I list.'), user('x')];
    await ask([...history, assistant(bad), user('Call a tool.')]);
    expect(summary(recording.trajectory()).map(({ kind }) => kind)).toEqual(['main', 'main']);
  });

  test('a request without tools that continues the history is a summary', async () => {
    const { ask, recording } = open([runs('a', 'ls'), says('short'), says('end')]);
    const one = await ask(OPENING);
    await ask([...OPENING, one, result('a-0', 'x'), user('Summarise.')], { tools: [] });
    await ask([OPENING[0] as Message, user('Another model began: short')]);
    expect(summary(recording.trajectory()).map(({ kind, matched }) => [kind, ...matched])).toEqual([
      ['main', 'first'],
      ['summary', 'other_tools'],
      ['main', 'other_prompt'],
    ]);
  });

  test.each<[RecorderOptions['trainLines'], (string | null)[]]>([
    ['all', [null, null, 'abandoned', 'foreign']],
    ['main', [null, 'subagent', 'abandoned', 'foreign']],
    ['abandoned', [null, null, null, 'foreign']],
  ])('train lines %s', async (trainLines, masked) => {
    const { ask, recording } = open([runs('a', 'ls'), says('sub'), says('bad'), says('other'), says('end')], {
      trainLines,
    });
    const one = await ask(OPENING);
    const history = [...OPENING, one, result('a-0', 'x')];
    await ask([user('Search.')], {}, 'subagent');
    await ask(history);
    await ask([user('Sample for me.')], {}, 'foreign');
    await ask([...history, user('Call a tool.')]);
    expect(linesOf(recording.trajectory()).map((line) => line.masked)).toEqual(masked);
  });

  test('the longest branch continues the line', async () => {
    const { ask, recording } = open([runs('a', 'ls'), says('short'), runs('b', 'ls'), says('end')]);
    const one = await ask(OPENING);
    await ask([...OPENING, one, result('a-0', 'x'), user('Summarise.')]);
    const three = await ask([...OPENING, one, result('a-0', 'x'), user('Go on.')]);
    await ask([...OPENING, one, result('a-0', 'x'), user('Go on.'), three, result('b-0', 'x')]);
    expect(summary(recording.trajectory())).toEqual([
      { id: 'L1', kind: 'main', masked: null, from: null, matched: ['first', 'continued', 'continued'] },
      { id: 'L2', kind: 'main', masked: null, from: 'L1+1', matched: ['continued'] },
    ]);
    expect(recording.trajectory().lines?.[0]?.from).toEqual({ line: 'L1', turns: 1, messages: 3 });
  });
});

describe('token ids that do not continue', () => {
  const broken = (policy: ScriptedPolicy): Pick<ScriptedPolicy, 'openLine'> => ({
    openLine: (after) => {
      const line = policy.openLine(after);
      return {
        async complete(request) {
          const reply = await line.complete(request);
          if ('prompt_token_ids' in reply && reply.prompt_token_ids && request.messages.length > 3)
            reply.prompt_token_ids[request.messages.length] = 7;
          return reply;
        },
      };
    },
  });
  const asked = async (requireTokens: boolean) => {
    const policy = createScriptedPolicy((_, number) => runs(`c${number}`, 'ls'));
    const options = recorderOptions(broken(policy), {
      policy: { requireTokens, experts: 'drop', tokenMode: 'echo' },
    });
    const recording = new Recording(options);
    const one = await recording.ask(requestOf(OPENING), null).outcome;
    const echo = 'answer' in one ? one.answer.message : assistant('');
    const two = await recording.ask(requestOf([...OPENING, echo, result('c1-0', 'x')]), null).outcome;
    return { recording, two };
  };
  test('fail the rollout when they are required', async () => {
    const { recording, two } = await asked(true);
    expect(two).toMatchObject({ refused: 'over' });
    await expect(recording.over).rejects.toMatchObject({ failureClass: 'policy_tokens' });
  });
  test('cut the line when they are not', async () => {
    const { recording } = await asked(false);
    const [one, two] = linesOf(recording.trajectory());
    expect(one?.turns).toHaveLength(1);
    expect(two).toMatchObject({
      from: null,
      turns: [{ request: { matched: 'other_tokens' }, tokens: { prefix_length: 0 } }],
    });
    expect(two?.messages).toHaveLength(5);
  });
});

const withArguments = (message: Message, text: string): Message => ({
  ...message,
  tool_calls: message.tool_calls?.map((call) => ({
    ...call,
    function: { ...call.function, arguments: text },
  })),
});
