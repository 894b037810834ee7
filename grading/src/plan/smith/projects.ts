/** SWE-smith's table of projects, with the test command and the log parser of each project. */
import table from '../../../data/swesmith.json' with { type: 'json' };

/** The rule that maps names of tests to their files. */
export type TestFilesRule =
  | 'none'
  | 'python'
  | 'python-mido'
  | 'python-slugify'
  | 'python-tornado'
  | 'go'
  | 'java'
  | 'javascript'
  | 'php'
  | 'rust';

export type SmithProject = {
  /** `owner__name.COMMIT`, where COMMIT is the first 8 digits of the commit. */
  name: string;
  commit: string;
  language: string;
  image: string;
  parser: string;
  testCommand: string;
  timeoutSeconds: number;
  /** Whether the files of the instance's tests are added to the command. */
  minTesting: boolean;
  /** Rule that appends other arguments to the command; null: none. */
  commandRule: 'mypy-k' | 'babel-packages' | null;
  testFiles: TestFilesRule;
  /** Folder of the repository, if the harness works in another folder; otherwise null. */
  treeElsewhere: string | null;
};

type Group = {
  language: string;
  parser: string;
  test_cmd: string;
  timeout?: number;
  min_testing?: boolean;
  test_files?: string;
  command_rule?: string;
  tree?: string;
  repos: string[];
};

/** Time limit of the harness for nearly all projects. */
const TIMEOUT_SECONDS = 90;

/** Languages whose name is also the name of a {@link TestFilesRule}. */
const SEARCHED_LANGUAGES = ['python', 'go', 'java', 'javascript', 'php', 'rust'] as const;

const PROJECTS = new Map(
  (table.projects as Group[]).flatMap((group) => group.repos.map((name) => [name, projectOf(name, group)])),
);

function projectOf(name: string, group: Group): SmithProject {
  const dot = name.lastIndexOf('.');
  return {
    name,
    commit: name.slice(dot + 1),
    language: group.language,
    image: smithImage(name),
    parser: group.parser,
    testCommand: group.test_cmd,
    timeoutSeconds: group.timeout ?? TIMEOUT_SECONDS,
    minTesting: group.min_testing ?? false,
    commandRule: (group.command_rule as SmithProject['commandRule'] | undefined) ?? null,
    testFiles:
      (group.test_files as TestFilesRule | undefined) ??
      SEARCHED_LANGUAGES.find((language) => language === group.language) ??
      'none',
    treeElsewhere: group.tree ?? null,
  };
}

/** Returns the published image of a project. Registries reject upper case and double underscores. */
function smithImage(name: string): string {
  const at = name.indexOf('__');
  // Registries also reject a hyphen before the underscore.
  const owner = name.slice(0, at).replace(/-$/, '_');
  return `swebench/swesmith.x86_64.${owner}_1776_${name.slice(at + 2)}:latest`.toLowerCase();
}

export const smithProject = (name: string): SmithProject | null => PROJECTS.get(name) ?? null;

export const smithProjects = (): string[] => [...PROJECTS.keys()];
