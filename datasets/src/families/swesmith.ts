/**
 * Reads rows of SWE-smith, also in the copies of Nemotron and SWE-agent. The patch of a row introduces the bug into a correct tree, and a
 * table of projects defines how the tests run.
 */
import { type SmithProject, smithCommand, smithProject, smithScript, testFilesOf } from '@swefarm/grading';
import { asObject, type FieldReader, type Row } from '../fields/fields.ts';
import { isImagePath } from '../fields/image.ts';
import { reverseDiff } from '../fields/reverse.ts';
import type { Family, InstanceDraft } from './family.ts';
import { PATCH, readTests, SWEBENCH_APPLY } from './planned.ts';
import { hideScript, restoreScript, roomScript, type SmithTree, startScript } from './smith/scripts.ts';

/** Name of the grader, with the commit of SWE-smith's harness that defines the rules and the table of projects. */
const GRADER = 'swesmith-9b74ac0';
/** Folder of the source tree in every supported image. */
const FOLDER = '/testbed';
/** Memory limit of SWE-smith's containers (`mem_limit`, 10g), in bytes. */
const MEMORY_BYTES = 10 * 1024 ** 3;
const CONDA = 'source /opt/miniconda3/bin/activate';

const ID = /^([^.]+__.+\.[0-9a-f]{8})\.[^.]+$/;

export const swesmith: Family = {
  name: 'swesmith',
  columns: ['instance_ref'],
  fits: (row) =>
    (typeof row.repo === 'string' && row.repo.toLowerCase().startsWith('swesmith/')) ||
    imagesOf(row).some((image) => /(^|\/)swesmith\./.test(image)) ||
    (typeof row.instance_id === 'string' && ID.test(row.instance_id)),
  read: readSmith,
};

const imagesOf = (row: Row): string[] =>
  [row.image, row.image_name, row.docker_image].filter((image) => typeof image === 'string');

function readSmith(read: FieldReader): InstanceDraft {
  const instanceId = read.id();
  const repo = read.text('repo', 'add the column repo: swesmith/ and the project');
  const project = projectOf(read, repo, instanceId);
  const bug = read.text('patch', 'SWE-smith makes its bug with the patch of the row');
  const tests = readTests(read);
  const draft: InstanceDraft = {
    instance_id: instanceId,
    repo,
    // The row contains a commit of a mirror that no longer exists.
    base_commit: project?.commit ?? '',
    ...read.texts('problem_statement', 'hints_text'),
    patch: reverseDiff(bug),
    ...tests,
    family: 'swesmith',
    image: imageOf(read, project),
  };
  if (!project) return draft;
  const failing = testFilesOf(project.testFiles, tests.FAIL_TO_PASS);
  const tree: SmithTree = { instanceId, folder: FOLDER, bug, changed: changedFiles(bug) };
  const counted = testFilesOf(project.testFiles, [...tests.FAIL_TO_PASS, ...tests.PASS_TO_PASS]);
  const refTestPatch = asObject(read.row.instance_ref)?.test_patch;
  const command = smithCommand(project, {
    ...tests,
    patch: bug,
    refTestPatch: typeof refTestPatch === 'string' ? refTestPatch : '',
  });
  return {
    ...draft,
    environment: {
      workdir: FOLDER,
      // Images without conda have their tools in PATH.
      ...(project.testCommand.includes(CONDA) ? {} : { activate: '' }),
      // Both sandboxes start from the same commit. Then the tests that the bug breaks are removed from the agent's tree.
      setup: [
        step('put the bug in', startScript(tree)),
        { ...step('hide the tests', hideScript(tree, failing)), roles: ['agent'] },
      ],
      history: 'replaced',
      memory_bytes: MEMORY_BYTES,
    },
    plan: {
      grader: GRADER,
      patch_path: PATCH,
      before: [{ ...step('make room for the patch', roomScript(tree, failing, PATCH)), may_fail: true }],
      apply: SWEBENCH_APPLY,
      blank: 'tests_run',
      after: [step('bring the test files back', restoreScript(tree, counted))],
      script: smithScript(command, FOLDER),
      timeout: project.timeoutSeconds,
      outcomes: { from: 'log', dialect: 'swesmith', parser: project.parser },
      verdict: { rule: 'swebench' },
    },
  };
}

const step = (name: string, script: string) => ({ name, script, timeout: 300 });

/** Finds the project of a row by the mirror in `repo`, else by the id. Returns null and refuses the row if it cannot be graded. */
function projectOf(read: FieldReader, repo: string, instanceId: string): SmithProject | null {
  const mirror = repo.toLowerCase().startsWith('swesmith/') ? repo.slice('swesmith/'.length) : null;
  const name = mirror ?? ID.exec(instanceId)?.[1] ?? repo;
  const project = smithProject(name);
  if (!project) {
    const expected = 'a project of the 833 that SWE-smith has a profile of, as owner__name.commit';
    read.refuse('SWE-smith has no profile of the project', 'repo', expected, name, 'leave these rows out');
    return null;
  }
  if (project.treeElsewhere !== null) {
    const expected = `an image with its tree in ${FOLDER}`;
    const found = `${name}, whose tree is in ${project.treeElsewhere}`;
    read.refuse(`the image has no tree in ${FOLDER}`, 'repo', expected, found, 'leave these rows out');
    return null;
  }
  if (project.parser === 'qunit-missing') {
    const expected = 'a project whose logs SWE-smith can read';
    read.refuse('SWE-smith names a log reader that it lacks', 'repo', expected, name, 'leave these rows out');
    return null;
  }
  return project;
}

/**
 * Returns the image of the project. A row may replace this image by a path, or by the same image in a private registry. All other names in
 * rows are older names of the project's image and are ignored.
 */
function imageOf(read: FieldReader, project: SmithProject | null): string {
  const own = read.image();
  if (!project) return own ?? '';
  if (own === null || isImagePath(own)) return own ?? project.image;
  const expected = lastPart(project.image);
  const named = lastPart(own).replaceAll('__', '_1776_').toLowerCase();
  const ofRegistry = /^(localhost|[^/]*[.:][^/]*)\//.test(own) && !own.startsWith('docker.io/');
  return ofRegistry && (named === expected || `${named}:latest` === expected) ? own : project.image;
}

const lastPart = (image: string): string => image.slice(image.lastIndexOf('/') + 1);

const changedFiles = (diff: string): string[] => [
  ...new Set(
    [...diff.matchAll(/^(?:diff --git a\/(.+?) b\/(.+)|--- a\/(.+)|\+\+\+ b\/(.+))$/gm)].flatMap((match) =>
      match.slice(1).filter((name) => name !== undefined),
    ),
  ),
];
