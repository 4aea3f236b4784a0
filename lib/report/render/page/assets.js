'use strict'

// What every page carries: styles, the parts of d3 that draw and zoom, and the code in client/. The code there is written
// as modules, which a page without requests cannot load: they are put into one script with a `require` of their own.

const fs = require('node:fs')
const path = require('node:path')

/** The parts of d3 that the page calls; what they need themselves is found. */
const PARTS = ['d3-selection', 'd3-scale', 'd3-shape', 'd3-axis', 'd3-zoom']

const client = path.join(__dirname, 'client')

function styles () {
  return fs.readFileSync(path.join(__dirname, 'page.css'), 'utf8')
}

/** The library, each part behind what it depends on; all of them add to a global `d3`. */
function charts () {
  /** @type {Map<string, string>} name → source */
  const sources = new Map()
  for (const name of PARTS) collect(name, __dirname, sources)
  return sealed([...sources.values()].join('\n'))
}

/** @param {string} name @param {string} from a folder @param {Map<string, string>} sources */
function collect (name, from, sources) {
  if (sources.has(name)) return
  const folder = home(name, from)
  const { dependencies = {} } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'))
  for (const other of Object.keys(dependencies).filter((one) => one.startsWith('d3-'))) collect(other, folder, sources)
  sources.set(name, fs.readFileSync(path.join(folder, 'dist', `${name}.min.js`), 'utf8'))
}

/** A package's folder; its exports do not tell. @param {string} name @param {string} from */
function home (name, from) {
  let folder = path.dirname(require.resolve(name, { paths: [from] }))
  while (path.basename(folder) !== name) folder = path.dirname(folder)
  return folder
}

function app () {
  const names = fs.readdirSync(client).filter((name) => name.endsWith('.js')).sort()
  const modules = names.map((name) => {
    const source = fs.readFileSync(path.join(client, name), 'utf8')
    return `${JSON.stringify(`./${name.slice(0, -3)}`)}: (module, require) => {\n${source}}`
  })
  return sealed(`'use strict'
{
  const sources = {
${modules.join(',\n')}
  }
  const loaded = {}
  const load = (name) => {
    if (loaded[name] === undefined) sources[name](loaded[name] = { exports: {} }, load)
    return loaded[name].exports
  }
  load('./main')
}
`)
}

/** Text inside of a script element may not look like its end. @param {string} source */
function sealed (source) {
  if (/<\/script|<!--/i.test(source)) throw new Error('a script of the page would end inside of itself')
  return source
}

module.exports = { styles, charts, app }
