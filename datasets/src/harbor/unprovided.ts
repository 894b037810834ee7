/** Lists the features of Harbor tasks that the farm does not provide. */
import { type Environment, isSeparate, networkOf, type TaskToml } from './tasktoml.ts';

/** Features that the farm does not provide: key, reason in errors, and whether a task requests the feature. */
type Unprovided = [key: string, reason: string, asks: (task: TaskToml) => boolean | undefined];

const environmentOf = (task: TaskToml, part: 'environment' | 'verifier.environment') =>
  part === 'environment' ? task.environment : task.verifier.environment;
const isOther = (service: string | null | undefined): boolean => (service ?? 'main') !== 'main';
const hasAllowlist = (part: Pick<Environment, 'network_mode' | 'allowed_hosts'> | undefined): boolean =>
  part?.network_mode === 'allowlist' || (part?.allowed_hosts.length ?? 0) > 0;

const UNPROVIDED: readonly Unprovided[] = [
  ['steps', 'several steps', ({ steps }) => steps.length > 0],
  ...(['environment', 'verifier.environment'] as const).flatMap((part): Unprovided[] => [
    [`${part}.os`, 'Windows', (task) => environmentOf(task, part)?.os === 'windows'],
    [`${part}.gpus`, 'GPUs', (task) => (environmentOf(task, part)?.gpus ?? 0) > 0],
    [`${part}.tpu`, 'TPUs', (task) => (environmentOf(task, part)?.tpu ?? null) !== null],
    [
      `${part}.mcp_servers`,
      'MCP servers',
      (task) => (environmentOf(task, part)?.mcp_servers.length ?? 0) > 0,
    ],
    [
      `${part}.skills_dir`,
      'skills of an agent',
      (task) => environmentOf(task, part)?.skills_dir !== undefined,
    ],
    [
      `${part}.network_mode`,
      'a network with an allowlist',
      (task) => hasAllowlist(environmentOf(task, part)),
    ],
  ]),
  [
    'artifacts',
    'artifacts of another service',
    ({ artifacts }) => artifacts.some(({ service }) => isOther(service)),
  ],
  [
    'verifier.collect',
    'commands in another service',
    ({ verifier }) => verifier.collect.some(({ service }) => isOther(service)),
  ],
  ...(['agent', 'verifier'] as const).flatMap((part): Unprovided[] => [
    [`${part}.network_mode`, 'a network with an allowlist', (task) => hasAllowlist(task[part])],
    [
      `${part}.network_mode`,
      'another network in one phase',
      // A separate verifier has a network of its own.
      (task) =>
        !(part === 'verifier' && isSeparate(task)) &&
        (task[part].network_mode ?? networkOf(task.environment)) !== networkOf(task.environment),
    ],
  ]),
];

export const unprovidedIn = (task: TaskToml): { key: string; reason: string }[] =>
  UNPROVIDED.filter(([, , asks]) => asks(task)).map(([key, reason]) => ({ key, reason }));
