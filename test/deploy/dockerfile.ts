/** Enough of the Dockerfile language for ours: instructions with their continuation lines, and COPY without flags but --from. */
export interface Instruction {
  name: string
  value: string
}

export interface Stage {
  from: string
  name: string | null
  instructions: Instruction[]
}

export function parseDockerfile (text: string): Stage[] {
  const lines = text.replace(/\\\n\s*/g, ' ').split('\n').map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'))
  const stages: Stage[] = []
  for (const line of lines) {
    const [, name, value] = /^(\S+)\s+(.*)$/.exec(line) ?? []
    if (name === undefined || value === undefined) throw new Error(`not an instruction: ${line}`)
    if (name === 'FROM') {
      const [from, as, stageName] = value.split(/\s+/)
      stages.push({ from: from as string, name: as === 'AS' ? stageName ?? null : null, instructions: [] })
    } else {
      stages.at(-1)?.instructions.push({ name, value })
    }
  }
  return stages
}

/** The values of the instructions of that name, in order. */
export const valuesOf = (stage: Stage, name: string): string[] => stage.instructions.filter((each) => each.name === name).map(({ value }) => value)

export interface Copy {
  from: string | null
  sources: string[]
  target: string
}

export function copiesOf (stage: Stage): Copy[] {
  return valuesOf(stage, 'COPY').map((value) => {
    const words = value.split(/\s+/)
    const from = words[0]?.startsWith('--from=') === true ? words.shift()?.slice('--from='.length) ?? null : null
    const target = words.pop()
    if (target === undefined || words.length === 0 || words.some((word) => word.startsWith('--'))) throw new Error(`not understood: COPY ${value}`)
    return { from, sources: words, target }
  })
}
