import type { Drill } from './drill.ts'
import { kill } from './kill.ts'
import { outage } from './outage.ts'
import { postFlood } from './post-flood.ts'
import { reloadStorm } from './reload-storm.ts'
import { retryStorm } from './retry-storm.ts'
import { slow } from './slow.ts'
import { wedge } from './wedge.ts'

/** A drill whose scale is its own matter. */
export interface AnyDrill extends Pick<Drill, 'name' | 'title'> {
  play: (scale: 'full' | 'gentle', context: Parameters<Drill['run']>[0]) => ReturnType<Drill['run']>
}

const any = <S>(drill: Drill<S>): AnyDrill => ({ name: drill.name, title: drill.title, play: (scale, context) => drill.run(context, drill[scale]) })

export const drills: readonly AnyDrill[] = [any(kill), any(outage), any(wedge), any(slow), any(postFlood), any(retryStorm), any(reloadStorm)]
