/** A card for tests. */
export const CARD = {
  card: 1,
  name: 'toy',
  version: '1.0',
  description: 'an agent of the tests',
  bundle: { name: 'toy' },
  needs: { libc: 'none' },
  api: { dialects: ['chat'] },
  files: { '{home}/toy.json': '{"model":"{model}","deep":{"limit":{context}}}' },
  env: { URL: '{endpoint}/v1', KEY: '{key}', PATH: '{bundle}/bin:{path}', BRACE: '{{task}' },
  command: ['{bundle}/bin/toy', '{options}', '--', '{task}'],
  options: {
    compact: {
      default: false,
      help: 'condense a full history',
      when: { true: { env: { COMPACT: '{context}' }, overflow: 'tell' }, false: { args: ['--no-compact'] } },
    },
    effort: { default: 'low', help: 'how much to think' },
  },
  ends: [
    {
      exit: 0,
      field: { file: '{out}/end.json', path: 'info.status', is: ['Submitted'] },
      status: 'submitted',
    },
    { exit: 'any', status: 'agent_error' },
  ],
  outputs: [{ path: '{out}/log', as: 'log', max_mib: 1 }],
};

export const VALUES = {
  endpoint: 'http://127.0.0.1:5000',
  key: 'key-1',
  model: 'Qwen/Qwen3',
  task: 'Fix "it": {key} $(date)',
  work: '/testbed',
  home: '/run/home',
  out: '/run/out',
  path: '/usr/bin:/bin',
  context: 4096,
  turns: 50,
};
