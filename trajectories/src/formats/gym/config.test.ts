import { describe, expect, test } from 'vitest';
import { gymFlags } from './config.ts';

const file = '--gym-config g.yaml';

test("keys of Gym become the equivalent flags, alone or in an agent's entry", () => {
  const keys = {
    concurrency: 16,
    env: 'singularity',
    cache_dir_template: '/sif/{instance_id}.sif',
    run_golden: true,
    step_timeout: 600,
    eval_timeout: 1800,
    skip_if_exists: true,
    collapse_limit: 3,
    step_limit: 250,
  };
  const flags = {
    concurrency: '16',
    runtime: 'apptainer',
    apptainerImages: '/sif/{instance_id}.sif',
    agent: 'golden',
    stepTimeout: '600',
    evalTimeout: '1800',
    skipIfExists: true,
    collapseLimit: '3',
    stepLimit: '250',
  };
  expect(gymFlags(keys, file)).toEqual(flags);
  const entry = { entrypoint: 'app.py', model_server: { name: 'policy_model' }, ...keys };
  expect(gymFlags({ agent: { responses_api_agents: { mini_swe_agent: entry } } }, file)).toEqual(flags);
  expect(gymFlags({ run_golden: false, cache_dir_template: null }, file)).toEqual({});
});

describe('errors name the wrong key', () => {
  test.each([
    [{ step_limits: 3 }, 'unknown key "step_limits"; did you mean "step_limit"?'],
    [{ entrypoint: 'app.py' }, 'unknown key "entrypoint"; known are concurrency, env,'],
    [{ toString: 1 }, 'unknown key "toString"'],
    [{ env: 'podman' }, 'env: expected docker or singularity, found "podman"'],
    [{ concurrency: 1.5 }, 'concurrency: expected a whole number, found 1.5'],
    [{ run_golden: 'yes' }, 'run_golden: expected true or false, found "yes"'],
    [{ eval_timeout: 0 }, 'eval_timeout: expected a number of seconds, found 0'],
    [['step_limit'], 'expected a mapping of keys'],
    [{ a: { responses_api_agents: { x: {}, y: {} } } }, '2 agents; leave one, or give its keys alone'],
  ])('%j', (tree, message) => {
    expect(() => gymFlags(tree, file)).toThrow(message);
  });
});
