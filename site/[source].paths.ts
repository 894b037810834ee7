/** Makes a page for each source file to which a page links. */
import { linkedSources, sourcePage } from './pages.ts';

export default {
  paths: () => linkedSources().map((source) => ({ params: { source }, content: sourcePage(source) })),
};
