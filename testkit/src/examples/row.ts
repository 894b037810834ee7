/** The dataset row of an example: SWE-bench's columns, and those in which a row names its own image and test command. */
import type { Patches } from './history.ts';
import type { Example } from './recipe.ts';

export type ExampleRow = {
  repo: string;
  instance_id: string;
  base_commit: string;
  patch: string;
  test_patch: string;
  problem_statement: string;
  hints_text: string;
  created_at: string;
  version: string;
  FAIL_TO_PASS: string[];
  PASS_TO_PASS: string[];
  environment_setup_commit: string;
  family: 'custom';
  image: string;
  test_cmd: string;
  log_parser: string;
  install?: string;
};

/** Registries and engines require lower case. */
export const dockerImageName = (instanceId: string): string =>
  `swefarm/example.${instanceId.toLowerCase()}:latest`;

export function toRow({ recipe, problem }: Example, patches: Patches, image: string): ExampleRow {
  return {
    repo: recipe.repo,
    instance_id: recipe.instance_id,
    base_commit: patches.base_commit,
    patch: patches.patch,
    test_patch: patches.test_patch,
    problem_statement: problem,
    hints_text: '',
    created_at: recipe.created_at,
    version: recipe.broken.version,
    FAIL_TO_PASS: recipe.FAIL_TO_PASS,
    PASS_TO_PASS: recipe.PASS_TO_PASS,
    environment_setup_commit: patches.base_commit,
    family: 'custom',
    image,
    test_cmd: recipe.test_cmd,
    log_parser: recipe.log_parser,
    ...(recipe.install === null ? {} : { install: recipe.install }),
  };
}
