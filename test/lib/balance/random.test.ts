import { conforms } from './conformance.ts'
import { subjects } from './subjects.ts'

conforms(subjects.random)
