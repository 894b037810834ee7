/**
 * Which rooms of a package a room may import, beside itself: only rooms that stand above it in its table. A folder that is not
 * here may import any, and tests may too.
 */
type Rooms = Readonly<Record<string, readonly string[]>>;

const SHARED: Rooms = {
  failures: [],
  security: [],
  waiting: [],
  processes: ['security'],
  records: ['failures'],
  config: ['failures', 'records', 'security'],
  files: ['failures', 'records'],
  metrics: ['failures', 'records'],
  'policy/toolcalls': ['records'],
  artifacts: ['config', 'failures', 'files', 'records', 'waiting'],
  redis: [
    'artifacts',
    'config',
    'failures',
    'files',
    'metrics',
    'processes',
    'records',
    'security',
    'waiting',
  ],
};

const GRADING: Rooms = {
  reward: [],
  programs: [],
  text: [],
  parsers: ['text'],
  'parsers/smith': ['parsers', 'text'],
  dialects: ['parsers', 'parsers/smith', 'text'],
  plan: ['dialects', 'parsers', 'text'],
  verdict: ['dialects', 'parsers', 'plan', 'text'],
  trust: ['dialects', 'parsers', 'plan', 'text', 'verdict'],
  report: ['dialects', 'parsers', 'plan', 'text', 'trust', 'verdict'],
};

const ROWS = ['datasets/families', 'datasets/fields'];
const RESULTS = ['datasets', 'datasets/fields', 'output'];
// Only the gateway knows HTTP: sessions and the page know nothing of it.
const PRODUCER: Rooms = {
  'datasets/fields': [],
  'datasets/families/smith': ['datasets/fields'],
  'datasets/families': ['datasets/families/smith', 'datasets/fields'],
  datasets: ROWS,
  'datasets/pictures': ROWS,
  'datasets/tools': ['datasets', ...ROWS],
  'datasets/hub': [],
  local: [],
  probe: [],
  redis: [],
  health: ['datasets'],
  output: ['datasets'],
  run: ['datasets'],
  export: ['datasets', 'output'],
  'formats/atif': ['export'],
  'formats/miniswe': ['export'],
  'formats/sft': ['export'],
  'formats/openhands': ['export'],
  'formats/sweagent': ['export'],
  'formats/swesmith': ['export'],
  'formats/tables': ['export'],
  'formats/tokens': ['export'],
  'formats/verl': ['datasets', 'export'],
  'formats/swebench': ['datasets', 'export'],
  'formats/gym': [...RESULTS, 'export'],
  regrade: [...RESULTS, 'formats/swebench'],
  sessions: ['datasets', 'run'],
  view: ['datasets/tools', 'output'],
  eval: [...RESULTS, 'formats/swebench', 'run', 'view'],
  formats: [
    ...['datasets', 'export', 'output'],
    ...[
      'atif',
      'gym',
      'miniswe',
      'openhands',
      'sft',
      'sweagent',
      'swebench',
      'swesmith',
      'tables',
      'tokens',
      'verl',
    ].map((name) => `formats/${name}`),
  ],
  selection: ['datasets', 'datasets/families', 'export', 'output', 'formats', 'formats/verl'],
  page: [...RESULTS, 'view'],
  collection: ['output', 'run'],
  scaling: ['datasets', 'output'],
  reports: [...RESULTS, 'formats', 'run', 'scaling', 'view'],
  'gateway/access': ['datasets', 'health', 'run', 'sessions'],
  'gateway/calls': ['datasets', 'formats/gym', 'gateway/access', 'probe', 'run'],
  'gateway/routes': [
    'datasets',
    'formats/gym',
    'gateway/access',
    'gateway/calls',
    'page',
    'run',
    'sessions',
    'view',
  ],
  gateway: ['gateway/access', 'gateway/calls', 'gateway/routes', 'page', 'run'],
};

const WORKER: Rooms = {
  threads: [],
  metrics: [],
  images: [],
  sandbox: ['images'],
  'sandbox/engine': ['images', 'sandbox'],
  'sandbox/namespaces': ['images', 'sandbox'],
  // No runtime imports another.
  'sandbox/host': ['sandbox', 'sandbox/namespaces'],
  'sandbox/docker': ['images', 'sandbox', 'sandbox/engine', 'sandbox/namespaces'],
  'sandbox/rootfs': ['images', 'sandbox', 'sandbox/engine', 'sandbox/namespaces'],
  'sandbox/apptainer': ['images', 'sandbox', 'sandbox/namespaces'],
  agent: ['sandbox'],
  'agent/policy': ['agent'],
  evaluation: ['sandbox', 'threads'],
  // An attempt knows nothing of its node but the services that it is given.
  rollout: ['agent', 'agent/policy', 'evaluation', 'metrics', 'sandbox', 'threads'],
  maintenance: ['metrics', 'rollout'],
  node: [
    'images',
    'agent/policy',
    'evaluation',
    'metrics',
    'rollout',
    'sandbox',
    'sandbox/apptainer',
    'sandbox/docker',
    'sandbox/host',
    'sandbox/rootfs',
    'threads',
  ],
  pull: ['node', 'rollout'],
};

const whole = (of: string, rooms: Rooms): Rooms =>
  Object.fromEntries(
    Object.entries(rooms).map(([room, allowed]) => [
      `${of}/src/${room}`,
      allowed.map((other) => `${of}/src/${other}`),
    ]),
  );

/** All of them, by their folders from the root. */
export const ROOMS: Rooms = {
  ...whole('shared', SHARED),
  ...whole('grading', GRADING),
  ...whole('producer', PRODUCER),
  ...whole('worker', WORKER),
};
