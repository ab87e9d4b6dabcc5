import { differential } from './differential/suite.ts'
import { smuggling } from './smuggling/suite.ts'
import type { Suite } from './suite.ts'

export const suites: readonly Suite[] = [smuggling, differential]
