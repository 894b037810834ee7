/** Names of parsers of tool calls. A new parser also needs an entry in `policy/src/toolcalls/registry.ts`. */
export const TOOL_PARSERS = [
  'auto',
  'hermes',
  'qwen3_coder',
  'glm',
  'kimi_k2',
  'deepseek_v3',
  'deepseek_dsml',
  'llama3_json',
  'pythonic',
  'lfm2',
  'mistral',
  'minimax_m1',
  'minimax_m2',
  'nemotron',
  'seed_oss',
  'harmony',
] as const;
export type ToolParser = (typeof TOOL_PARSERS)[number];
