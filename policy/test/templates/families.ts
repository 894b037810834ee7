/** The form of the answers of families of models. For each of FAMILIES, chats/NAME.jinja is our chat template of the same structure. */

export type Spoken = {
  think: string;
  prose: string;
  commands: readonly string[];
};

export type Family = {
  name: string;
  /** Special tokens, each one id. */
  tokens: readonly string[];
  /** Maximum number of calls of one answer. */
  calls: number;
  /** The end of an answer, as the model samples it and as its template writes it. */
  end: { model: string; template: string };
  endOfCalls: { model: string; template: string };
  /** The sampled thought; the template may have opened it. */
  thought: (think: string) => string;
  /** The sampled text and calls, without the end. */
  speech: (spoken: Spoken) => string;
  /** Whether the template of the family requires tools. */
  onlyTools?: boolean;
  /** A tool result as the prompt contains it. */
  result?: (text: string) => string;
};

const think = (thought: string): string => (thought === '' ? '' : `<think>\n${thought}\n</think>\n\n`);
const args = (command: string): string => JSON.stringify({ command });
/** JSON with blanks, as Python's templates write it. */
const spaced = (command: string): string => `{"command": ${JSON.stringify(command)}}`;
const same = (token: string) => ({ model: token, template: token });
const [END, OVER] = ['<|im_end|>', '<｜end▁of▁sentence｜>'];

const tagged = (command: string): string =>
  `<tool_call>\n<function=bash>\n<parameter=command>\n${command}\n</parameter>\n</function>\n</tool_call>`;

export const FAMILIES: readonly Family[] = [
  {
    name: 'qwen3',
    ...{ tokens: ['<|im_start|>', END], calls: 3, end: same(END), endOfCalls: same(END), thought: think },
    speech: ({ prose, commands }) =>
      [
        ...(prose === '' ? [] : [prose]),
        ...commands.map((c) => `<tool_call>\n{"name": "bash", "arguments": ${args(c)}}\n</tool_call>`),
      ].join('\n'),
  },
  {
    name: 'qwen3-coder',
    ...{ tokens: ['<|im_start|>', END], calls: 3, end: same(END), endOfCalls: same(END), thought: think },
    speech: ({ prose, commands }) =>
      commands.length === 0
        ? prose
        : [...(prose === '' ? [] : [prose, '']), ...commands.map(tagged)].join('\n'),
  },
  {
    name: 'nemotron-3',
    ...{ tokens: ['<|im_start|>', END], calls: 3, end: same(END), endOfCalls: same(END) },
    thought: (thought) => `${thought}\n</think>\n`,
    speech: ({ prose, commands }) =>
      commands.length === 0 ? prose : `${prose}\n${commands.map((c) => `${tagged(c)}\n`).join('')}`,
  },
  {
    name: 'glm-4',
    tokens: ['[gMASK]', '<sop>', '<|system|>', '<|user|>', '<|assistant|>', '<|observation|>'],
    ...{ calls: 3, end: same('<|user|>'), endOfCalls: same('<|observation|>') },
    thought: (thought) => `\n<think>${thought}</think>`,
    speech: ({ prose, commands }) =>
      (prose === '' ? '' : `\n${prose}`) +
      commands
        .map(
          (c) => `\n<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>${c}</arg_value>\n</tool_call>`,
        )
        .join(''),
  },
  {
    name: 'deepseek-v3',
    tokens: [
      ...['<｜User｜>', '<｜Assistant｜>', OVER, '<｜tool▁sep｜>'],
      ...['calls', 'call', 'output'].flatMap((of) => [`<｜tool▁${of}▁begin｜>`, `<｜tool▁${of}▁end｜>`]),
    ],
    ...{ calls: 3, end: same(OVER), endOfCalls: same(OVER), thought: () => '' },
    speech: ({ prose, commands }) => {
      const calls = commands.map(
        (c) => `<｜tool▁call▁begin｜>bash<｜tool▁sep｜>${args(c)}<｜tool▁call▁end｜>`,
      );
      return calls.length === 0
        ? prose
        : `${prose}<｜tool▁calls▁begin｜>${calls.join('')}<｜tool▁calls▁end｜>`;
    },
  },
  {
    name: 'llama-3.1',
    tokens: ['<|start_header_id|>', '<|end_header_id|>', '<|eot_id|>'],
    ...{ calls: 1, end: same('<|eot_id|>'), endOfCalls: same('<|eot_id|>'), thought: () => '' },
    speech: ({ prose, commands: [command] }) =>
      command === undefined ? prose : `{"name": "bash", "parameters": ${spaced(command)}}`,
    result: (text) => JSON.stringify(text),
  },
  {
    name: 'mistral',
    tokens: [
      ...['SYSTEM_PROMPT', 'AVAILABLE_TOOLS', 'INST', 'TOOL_RESULTS'].flatMap((of) => [
        `[${of}]`,
        `[/${of}]`,
      ]),
      ...['[TOOL_CALLS]', '[CALL_ID]', '[ARGS]', '[TOOL_CONTENT]', '</s>'],
    ],
    ...{ calls: 3, end: same('</s>'), endOfCalls: same('</s>'), thought: () => '' },
    speech: ({ prose, commands }) =>
      prose + commands.map((c, i) => `[TOOL_CALLS]bash[CALL_ID]sampled0${i}[ARGS]${spaced(c)}`).join(''),
  },
  {
    name: 'gpt-oss',
    tokens: ['<|start|>', '<|end|>', '<|message|>', '<|channel|>', '<|constrain|>', '<|call|>', '<|return|>'],
    calls: 1,
    end: { model: '<|return|>', template: '<|end|>' },
    endOfCalls: same('<|call|>'),
    thought: (thought) =>
      thought === '' ? '' : `<|channel|>analysis<|message|>${thought}<|end|><|start|>assistant`,
    speech: ({ prose, commands: [command] }) =>
      command === undefined
        ? `<|channel|>final<|message|>${prose}`
        : ` to=functions.bash<|channel|>commentary json<|message|>${spaced(command)}`,
    result: (text) => JSON.stringify(text),
  },
];

const invoke = (prefix: string, attribute: string) => (c: string) =>
  `<${prefix}invoke name="bash">\n<${prefix}parameter name="command"${attribute}>${c}</${prefix}parameter>\n</${prefix}invoke>\n`;
const dsml = (
  block: string,
): Pick<Family, 'calls' | 'end' | 'endOfCalls' | 'thought' | 'speech' | 'tokens'> => ({
  ...{ tokens: ['<｜User｜>', '<｜Assistant｜>', OVER, '｜DSML｜'], calls: 3, end: same(OVER) },
  ...{ endOfCalls: same(OVER), thought: () => '' },
  speech: ({ prose, commands }) =>
    commands.length === 0
      ? prose
      : `${prose}\n\n<｜DSML｜${block}>\n${commands.map(invoke('｜DSML｜', ' string="true"')).join('')}</｜DSML｜${block}>`,
});
const [hermes, coder, nemotron] = FAMILIES as unknown as [Family, Family, Family];
const MINIMAX = '[e~[';
const SPECIAL = '<SPECIAL_12>';

/** Families that have only real templates, which run.ts downloads. */
export const MORE: readonly Family[] = [
  { ...hermes, name: 'qwen2.5' },
  { ...hermes, name: 'hermes-3', onlyTools: true },
  { ...coder, name: 'qwen3.5', thought: nemotron.thought },
  { name: 'deepseek-v3.2', ...dsml('function_calls') },
  { name: 'deepseek-v4', ...dsml('tool_calls') },
  {
    name: 'minimax-m2',
    tokens: [MINIMAX, ']~b]', ']~!b[', '<minimax:tool_call>', '</minimax:tool_call>'],
    ...{ calls: 3, end: same(MINIMAX), endOfCalls: same(MINIMAX), thought: nemotron.thought },
    speech: ({ prose, commands }) =>
      commands.length === 0
        ? prose
        : `${prose}\n<minimax:tool_call>\n${commands
            .map((c) => `<invoke name="bash">\n<parameter name="command">${c}</parameter>\n</invoke>\n`)
            .join('')}</minimax:tool_call>`,
  },
  {
    name: 'nemotron-nano-2',
    tokens: ['<SPECIAL_10>', '<SPECIAL_11>', SPECIAL],
    ...{ calls: 3, end: same(SPECIAL), endOfCalls: same(SPECIAL), thought: nemotron.thought },
    speech: ({ prose, commands }) =>
      commands.length === 0
        ? prose
        : `${prose}<TOOLCALL>[${commands.map((c) => `{"name": "bash", "arguments": ${spaced(c)}}`).join(', ')}]</TOOLCALL>`,
  },
  {
    name: 'kimi-k2',
    tokens: [
      ...['system', 'user', 'assistant', 'middle', 'end'].map((of) => `<|im_${of}|>`),
      ...['calls_section_begin', 'calls_section_end', 'call_begin', 'call_argument_begin', 'call_end'].map(
        (of) => `<|tool_${of}|>`,
      ),
    ],
    ...{ calls: 3, end: same(END), endOfCalls: same(END), thought: () => '' },
    speech: ({ prose, commands }) =>
      commands.length === 0
        ? prose
        : `${prose}<|tool_calls_section_begin|>${commands
            .map(
              (c, i) =>
                `<|tool_call_begin|>functions.bash:${i}<|tool_call_argument_begin|>${spaced(c)}<|tool_call_end|>`,
            )
            .join('')}<|tool_calls_section_end|>`,
  },
];
