/** Finds the words of a source to which the glossary applies: declared names, and texts of more than one word. */
import {
  isIdentifier,
  isJsxAttribute,
  isJsxText,
  isNoSubstitutionTemplateLiteral,
  isPrivateIdentifier,
  isPropertyAccessExpression,
  isStringLiteral,
  isTemplateHead,
  isTemplateMiddleOrTemplateTail,
  type Node,
  type SourceFile,
} from 'typescript/unstable/ast';

export type Written = { line: number; text: string; kind: 'name' | 'text' };

export function writtenIn(source: SourceFile, text: string): Written[] {
  const found: Written[] = [];
  const visit = (node: Node): undefined => {
    const kind = isName(node) ? 'name' : isText(node) ? 'text' : null;
    if (kind !== null) {
      const start = node.getStart(source);
      found.push({ kind, text: text.slice(start, node.end), line: text.slice(0, start).split('\n').length });
    }
    node.forEachChild(visit);
  };
  source.forEachChild(visit);
  return found;
}

function isName(node: Node): boolean {
  if (!isIdentifier(node) && !isPrivateIdentifier(node)) return false;
  const parent = node.parent as Node & { name?: Node };
  return parent.name === node && !isPropertyAccessExpression(parent) && !isJsxAttribute(parent);
}

const isText = (node: Node): boolean =>
  (isStringLiteral(node) ||
    isNoSubstitutionTemplateLiteral(node) ||
    isTemplateHead(node) ||
    isTemplateMiddleOrTemplateTail(node) ||
    isJsxText(node)) &&
  /[a-z] [a-z]/i.test(node.text);

/** Splits a name into lower-case words: `HeldJob` → `held`, `job`. */
export const wordsOf = (name: string): string[] =>
  name
    .replace(/([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$1$3 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/);
