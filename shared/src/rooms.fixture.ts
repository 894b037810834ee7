/**
 * The folders of a package that each folder may import: only folders above it in the table. Tests and folders without an entry may
 * import any.
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

const POLICY: Rooms = { toolcalls: [] };

const AGENTS: Rooms = { '': [], card: [''], store: [''], install: ['', 'card', 'store'] };

const RECORDER: Rooms = { dialects: [], lines: ['dialects'], '': [], endpoint: ['', 'dialects', 'lines'] };

const SANDBOX: Rooms = {
  images: [],
  '': ['images'],
  engine: ['', 'images'],
  registry: ['images'],
  listening: [''],
  trees: [''],
  namespaces: ['', 'images', 'listening'],
  // No runtime imports another.
  host: ['', 'listening', 'namespaces'],
  docker: ['', 'engine', 'images', 'listening', 'namespaces'],
  rootfs: ['', 'engine', 'images', 'namespaces', 'registry'],
  apptainer: ['', 'images', 'namespaces', 'registry'],
};

const DATASETS: Rooms = {
  fields: [],
  'families/smith': ['fields'],
  harbor: ['fields'],
  families: ['families/smith', 'fields', 'harbor'],
  '': ['families', 'fields', 'harbor'],
  pictures: ['families', 'fields'],
  tools: ['', 'families', 'fields', 'harbor'],
  hub: [],
};

const RUNS: Rooms = { draws: [], probe: [], health: [], '': ['draws'] };

const FORMATS = [
  'gym',
  'harbor',
  'miniswe',
  'openhands',
  'sft',
  'sweagent',
  'swebench',
  'swesmith',
  'tables',
  'tokens',
  'verl',
].map((name) => `formats/${name}`);
const TRAJECTORIES: Rooms = {
  '': [],
  output: [''],
  export: ['output'],
  ...Object.fromEntries(FORMATS.map((name) => [name, ['export', 'output']])),
  formats: ['export', 'output', ...FORMATS],
  selection: ['export', 'formats', 'formats/verl', 'output'],
  scaling: ['output'],
  reports: ['', 'formats', 'output', 'scaling'],
};

// The page's data does not depend on HTTP.
const GATEWAY: Rooms = {
  page: [],
  access: [],
  dryrun: ['access'],
  sessions: ['access'],
  calls: ['access'],
  routes: ['access', 'calls', 'page', 'sessions'],
  '': ['access', 'calls', 'dryrun', 'page', 'routes'],
};

const PRODUCER: Rooms = {
  local: [],
  redis: [],
  view: [],
  collection: [],
  regrade: [],
  eval: ['view'],
};

const WORKER: Rooms = {
  threads: [],
  metrics: [],
  'agent/editor': [],
  agent: ['agent/editor'],
  'agent/policy': ['agent'],
  'agent/installed': ['agent'],
  admission: ['agent', 'agent/policy'],
  harbor: [],
  evaluation: ['harbor', 'threads'],
  // The code of an attempt does not import its node, which passes the services that the attempt uses.
  rollout: [
    'admission',
    'agent',
    'agent/installed',
    'agent/policy',
    'evaluation',
    'harbor',
    'metrics',
    'threads',
  ],
  maintenance: ['metrics', 'rollout'],
  node: ['admission', 'agent/policy', 'evaluation', 'harbor', 'metrics', 'rollout', 'threads'],
  pull: ['node', 'rollout'],
  dryrun: ['agent', 'agent/policy', 'node', 'rollout'],
};

const folder = (of: string, room: string): string => (room === '' ? `${of}/src` : `${of}/src/${room}`);
const whole = (of: string, rooms: Rooms): Rooms =>
  Object.fromEntries(
    Object.entries(rooms).map(([room, allowed]) => [
      folder(of, room),
      allowed.map((other) => folder(of, other)),
    ]),
  );

/** The folders of all packages, with the folders that each may import; paths from the root. */
export const ROOMS: Rooms = {
  ...whole('shared', SHARED),
  ...whole('policy', POLICY),
  ...whole('agents', AGENTS),
  ...whole('recorder', RECORDER),
  ...whole('sandbox', SANDBOX),
  ...whole('grading', GRADING),
  ...whole('datasets', DATASETS),
  ...whole('runs', RUNS),
  ...whole('trajectories', TRAJECTORIES),
  ...whole('gateway', GATEWAY),
  ...whole('producer', PRODUCER),
  ...whole('worker', WORKER),
};
