/** The dashboard, as far as the tests look at it. */
import { readFileSync } from 'node:fs'
import { shipped } from '../config/support.ts'

interface Source { type?: string, uid?: string }
interface Panel {
  id: number
  type: string
  title: string
  description?: string
  datasource?: Source
  gridPos: { x: number, y: number, w: number, h: number }
  targets?: Array<{ expr: string, legendFormat: string, datasource?: Source }>
}
interface Variable { name: string, type: string, datasource?: Source, definition?: string }
interface Dashboard {
  schemaVersion: number
  id?: unknown
  panels: Panel[]
  templating: { list: Variable[] }
  annotations: { list: Array<{ datasource: Source, expr: string, textFormat: string }> }
}

export const dashboard = JSON.parse(readFileSync(shipped('deploy/grafana/breakwater.json'), 'utf8')) as Dashboard
export const panels = dashboard.panels.filter(({ type }) => type !== 'row')
export const { list: variables } = dashboard.templating

/** As Grafana asks with all values chosen. */
export const asked = (query: string): string => query.replace(/\$(?:instance|pool|upstream)\b/g, '.*').replaceAll('$__rate_interval', '5m')
