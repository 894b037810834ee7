/** Converts an instance to a row of verl's dataset, for verl's RLHFDataset, ToolAgentLoop and reward manager. */
import { createHash } from 'node:crypto';
import type { Instance } from '@swefarm/shared';
import { type PromptStyle, promptOf } from './prompts.ts';

export type VerlOptions = {
  style: PromptStyle;
  /** Whether rows contain the gold patch, in `extra_info.patch`; otherwise no field contains any part of the patch. */
  gold: boolean;
  agentName: string;
};

export type VerlRow = ReturnType<typeof verlRow>;

export type Split = 'train' | 'val';

/** Returns the default agent loop of verl: `tool_agent`, or `single_turn_agent` for rows whose answer is the patch itself. */
export const agentNameOf = (style: PromptStyle): string =>
  style === 'tools' ? 'tool_agent' : 'single_turn_agent';

export function verlRow(instance: Instance, split: Split, options: VerlOptions) {
  const { instance_id, repo, base_commit, FAIL_TO_PASS, PASS_TO_PASS } = instance;
  const { health: _health, pictures: _pictures, ...plain } = instance;
  const carried = JSON.stringify({ ...plain, patch: options.gold ? instance.patch : '' });
  const kwargs = { create_kwargs: { instance_id, instance: carried } };
  return {
    data_source: 'swefarm',
    prompt: promptOf(instance, options.style),
    ability: 'code',
    reward_model: { style: 'rule', ground_truth: instance_id },
    agent_name: options.agentName,
    extra_info: {
      split,
      index: stableIndex(instance_id),
      instance_id,
      repo,
      base_commit,
      tests: { FAIL_TO_PASS, PASS_TO_PASS },
      prompt_style: options.style,
      need_tools_kwargs: true,
      tools_kwargs: { bash: kwargs, submit_solution: kwargs },
      ...(options.gold ? { patch: instance.patch } : {}),
    },
  };
}

/** Returns an index that depends only on the id, so that indices are comparable between files and runs. */
export const stableIndex = (instanceId: string): number => hashOf(instanceId).readUIntBE(0, 6);

/** Returns the split of an instance. It depends only on the id, so a larger dataset moves no instance from train to val. */
export const splitOf = (instanceId: string, valShare: number): Split =>
  hashOf(`split ${instanceId}`).readUIntBE(0, 6) / 2 ** 48 < valShare ? 'val' : 'train';

const hashOf = (text: string): Buffer => createHash('sha256').update(text).digest();
