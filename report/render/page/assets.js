'use strict'

// Assets of every page: styles, the modules of d3 that draw and zoom, and the code in client/. That code is
// written as modules, which a page without requests cannot load: they are put into one script with a
// `require` of its own.

const fs = require('node:fs')
const path = require('node:path')

/** Modules of d3 that the page calls; their dependencies are added. */
const D3_MODULES = ['d3-selection', 'd3-scale', 'd3-shape', 'd3-axis', 'd3-zoom', 'd3-brush']

/** In this order: a later one refines an earlier one. */
const STYLES = ['page.css', 'flame.css', 'sections.css']

/** What the page's code shares with the rest of longstack: paths as its modules require them. */
const SHARED = ['../../../../lib/text']

const client = path.join(__dirname, 'client')

function styles () {
  return STYLES.map((name) => fs.readFileSync(path.join(__dirname, name), 'utf8')).join('\n')
}

/** Returns d3, each module after its dependencies; all of them add to a global `d3`. */
function charts () {
  /** Sources by name. @type {Map<string, string>} */
  const sources = new Map()
  for (const name of D3_MODULES) collect(name, __dirname, sources)
  return checked([...sources.values()].join('\n'))
}

/**
 * @param {string} name
 * @param {string} parent directory of the package that needs it
 * @param {Map<string, string>} sources
 */
function collect (name, parent, sources) {
  if (sources.has(name)) return
  const directory = directoryOf(name, parent)
  const { dependencies = {} } = JSON.parse(fs.readFileSync(path.join(directory, 'package.json'), 'utf8'))
  const modules = Object.keys(dependencies).filter((dependency) => dependency.startsWith('d3-'))
  for (const dependency of modules) collect(dependency, directory, sources)
  sources.set(name, fs.readFileSync(path.join(directory, 'dist', `${name}.min.js`), 'utf8'))
}

/**
 * Returns a package's directory, which its exports do not contain.
 * @param {string} name
 * @param {string} parent
 */
function directoryOf (name, parent) {
  let directory = path.dirname(require.resolve(name, { paths: [parent] }))
  while (path.basename(directory) !== name) directory = path.dirname(directory)
  return directory
}

/** Returns the code of the page. @param {string} main module that is loaded first */
function app (main) {
  const files = fs.readdirSync(client).filter((name) => name.endsWith('.js')).sort()
  const names = [...files.map((name) => `./${name.slice(0, -3)}`), ...SHARED]
  const modules = names.map((name) => {
    const source = fs.readFileSync(path.join(client, `${name}.js`), 'utf8')
    return `${JSON.stringify(name)}: (module, require) => {\n${source}}`
  })
  return checked(`'use strict'
{
  const sources = {
${modules.join(',\n')}
  }
  const loaded = {}
  const load = (name) => {
    if (loaded[name] === undefined) sources[name](loaded[name] = { exports: {} }, load)
    return loaded[name].exports
  }
  load(${JSON.stringify(main)})
}
`)
}

/** Checks that a script does not contain the end of its element. @param {string} source */
function checked (source) {
  if (/<\/script|<!--/i.test(source)) throw new Error('A script of the page contains </script or <!--.')
  return source
}

module.exports = { styles, charts, app }
