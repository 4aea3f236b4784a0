'use strict'

// A platform's package is found wherever package managers put it: its binary is loaded, and the generated
// files use its code.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { binaryName, findFile } = require('../../lib/platform')
const { Layouts, layouts, noReadOnly } = require('../helpers/layouts')
const { inherited } = require('../helpers/run')

const trees = new Layouts()
test.after.always(() => trees.remove())

const engine = findFile(binaryName(process.versions.modules)) === undefined ? 'js' : 'native'
const hasCode = Number(process.versions.node.split('.', 1)[0]) >= 22

const STATE = `
const { createRequire } = require('node:module')
const { shared, bundles } = createRequire(process.argv[1])('./start')
const { engine, engineWhy } = shared.trace.stats()
const [first, later] = bundles()
const refused = [first, later].map((bundle) => bundle?.script.cachedDataRejected ?? 'no code')
console.log(JSON.stringify({ engine, engineWhy, refused, later: later !== undefined }))
`

for (const layout of Object.keys(layouts)) {
  const reason = layout === 'read-only' ? noReadOnly() : undefined
  test(`${layout}: the package of the platform is found`, (t) => {
    if (reason !== undefined) return t.log(reason)
    const { cwd, register, flags, preloads, user } = trees.make(layout, 'plain')
    const args = [...preloads, ...flags, '-r', register, '-e', STATE, register]
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd, env: inherited, encoding: 'utf8', ...user })
    t.is(status, 0, stderr)
    const code = hasCode ? false : 'no code'
    t.like(JSON.parse(stdout), { engine, refused: [code, code], later: true }, stdout)
  })
}

test('a package of another version, or one that is not installed, is not used', (t) => {
  const { cwd, register } = trees.make('plain', 'plain')
  const [directory] = fs.readdirSync(path.join(cwd, 'node_modules')).filter((name) => /^longstack-/.test(name))
  const manifest = path.join(cwd, 'node_modules', directory, 'package.json')
  const text = fs.readFileSync(manifest, 'utf8')
  const state = () => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['-r', register, '-e', STATE, register], { cwd, env: inherited, encoding: 'utf8' })
    t.is(status, 0, stderr)
    return JSON.parse(stdout)
  }
  fs.rmSync(manifest) // it is a link to the one of all
  fs.writeFileSync(manifest, text.replace(/"version":"[^"]*"/, '"version":"0.0.9"'))
  t.like(state(), { engine: 'js', refused: ['no code', 'no code'], later: false })
  t.regex(state().engineWhy, /another version: longstack-[\w-]+@0\.0\.9, expected \d/)
  fs.rmSync(path.dirname(manifest), { recursive: true })
  t.like(state(), { engine: 'js', later: false })
  t.regex(state().engineWhy, /not installed: npm install longstack-[\w-]+@\d/)
})
