/** Tests instances of several dataset families in one file on rootfs. families.full.test.ts tests them on Docker. */
import { familySuite } from './familysuite.ts';

familySuite('rootfs');
