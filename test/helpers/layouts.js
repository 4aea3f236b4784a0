'use strict'

// Trees with a program, its packages and longstack, laid out like those of package managers. Their files are
// hard links to one copy, made without a network: Yarn's trees by Yarn itself, the others by hand.

const { execFileSync, spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const { ownManifest, target: platform } = require('../../lib/platform')
const { root } = require('./run')

const PROGRAM = path.join(root, 'test', 'fixtures', 'layouts')
const INSTALLED = ['index.js', 'lib', 'report', 'native/prebuilds', 'package.json'] // loadable at start
const REGISTER = path.join('longstack', 'lib', 'register.js')
const PLATFORM = `longstack-${platform()}` // package with this platform's files
const OWN_PACKAGES = ['longstack', 'first', 'second', 'third']
const NOBODY = 65534 // uid and gid
const YARN_MS = 240_000
const YARN_SETTINGS = `
enableGlobalCache: false
enableNetwork: false
enableTelemetry: false
nodeLinker: pnp
pnpEnableEsmLoader: true
`

/**
 * @typedef {object} Project
 * @property {string} cwd
 * @property {string} main directory of the path by which main.cjs and main.mjs are started
 * @property {string} register lib/register.js, as found from there
 * @property {string[]} flags of node
 * @property {string[]} preloads of the package manager, as words for NODE_OPTIONS
 * @property {{ uid?: number, gid?: number }} user user who runs the program
 *
 * @typedef {{ name: string, version: string, needs: string[] }} Package needs: directories in node_modules
 */

/** Packages of the program, which requires `first` and imports `third`. @type {Record<string, string>} */
const packageFiles = {
  'first/package.json': '{ "name": "first", "version": "1.0.0", "dependencies": { "second": "2.0.0" } }',
  'first/index.js': "module.exports = 'first with ' + require('second')",
  'second/package.json': '{ "name": "second", "version": "2.0.0" }',
  'second/index.js': "module.exports = 'second'",
  'third/package.json': '{ "name": "third", "version": "3.0.0", "type": "module", "exports": "./third.js" }',
  'third/third.js': "export default 'third'"
}

/** @param {string} directory @param {Record<string, string>} files text by path */
function write (directory, files) {
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
    fs.writeFileSync(path.join(directory, name), text)
  }
}

/** Copies a tree as hard links. @param {string} source @param {string} target */
function copyLinked (source, target) {
  fs.mkdirSync(target, { recursive: true })
  for (const entry of fs.readdirSync(source, { withFileTypes: true })) {
    const [from, to] = [path.join(source, entry.name), path.join(target, entry.name)]
    if (entry.isDirectory()) copyLinked(from, to)
    else fs.linkSync(from, to)
  }
}

/** Makes a relative symbolic link. @param {string} target @param {string} name */
function link (target, name) {
  fs.mkdirSync(path.dirname(name), { recursive: true })
  fs.symlinkSync(path.relative(path.dirname(name), target), name)
}

/**
 * Finds longstack's dependencies, and theirs, in the checkout.
 * @returns {Map<string, Package>} by their directory in node_modules
 */
function findDependencies () {
  const modules = path.join(root, 'node_modules')
  /** @type {Map<string, Package>} */
  const packages = new Map()
  /** @param {string} name @param {string} user directory in node_modules @returns {string} */
  const add = (name, user) => {
    const nested = path.join(user, 'node_modules', name)
    const directory = fs.existsSync(path.join(modules, nested)) ? nested : name
    if (packages.has(directory)) return directory
    const { version, dependencies = {} } = require(path.join(modules, directory, 'package.json'))
    const added = { name, version, needs: /** @type {string[]} */ ([]) }
    packages.set(directory, added)
    added.needs = Object.keys(dependencies).map((need) => add(need, directory))
    return directory
  }
  for (const name of Object.keys(require(path.join(root, 'package.json')).dependencies)) add(name, '')
  return packages
}

/** Makes trees in its own directory, until `remove`. */
class Layouts {
  #directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-layouts-')))
  #store = path.join(this.#directory, 'store')
  #dependencies = findDependencies()
  /** @type {string[]} */
  #readOnly = []
  #count = 0

  constructor () {
    fs.chmodSync(this.#directory, 0o755)
    const longstack = path.join(this.#store, 'longstack')
    const modules = path.join(root, 'node_modules')
    for (const name of INSTALLED) {
      const source = path.join(root, name)
      if (!fs.existsSync(source)) continue // missing if there was no compiler
      fs.cpSync(source, path.join(longstack, name), { recursive: true, preserveTimestamps: true })
    }
    fs.symlinkSync(modules, path.join(longstack, 'node_modules'))
    execFileSync(process.execPath, [path.join(longstack, 'lib', 'start', 'build.js')], { stdio: 'pipe' })
    fs.rmSync(path.join(longstack, 'node_modules'))
    this.#split(longstack)
    for (const name of this.#dependencies.keys()) {
      const nested = path.join(modules, name, 'node_modules')
      const filter = (/** @type {string} */ file) => file !== nested
      fs.cpSync(path.join(modules, name), path.join(this.#store, name), { recursive: true, filter })
    }
    write(this.#store, packageFiles)
    fs.cpSync(PROGRAM, path.join(this.#store, 'program'), { recursive: true })
    execFileSync('chmod', ['-R', 'a+rX', this.#store])
  }

  /** Splits a package in two, as for a release. @param {string} longstack */
  #split (longstack) {
    const { version } = ownManifest()
    fs.renameSync(path.join(longstack, 'native', 'prebuilds', platform()), path.join(this.#store, PLATFORM))
    fs.rmSync(path.join(longstack, 'native'), { recursive: true })
    write(this.#store, {
      [`${PLATFORM}/package.json`]: JSON.stringify({ name: PLATFORM, version }),
      'longstack/package.json': JSON.stringify({ ...ownManifest(), optionalDependencies: { [PLATFORM]: version } })
    })
  }

  /** Makes an empty directory that everybody may write to. */
  scratch () {
    const directory = path.join(this.#directory, String(++this.#count))
    fs.mkdirSync(directory)
    fs.chmodSync(directory, 0o777)
    return directory
  }

  /**
   * @param {string} layout
   * @param {string} name of the directory that contains everything
   * @returns {Project}
   */
  make (layout, name) {
    const directory = path.join(this.scratch(), name, 'project')
    fs.mkdirSync(directory, { recursive: true })
    const register = path.join(directory, 'node_modules', REGISTER)
    const project = { cwd: directory, main: directory, register, flags: [], preloads: [], user: {} }
    return { ...project, ...layouts[layout](this, directory) }
  }

  /** @param {string} name of a package, or the program @param {string} target */
  put (name, target) {
    copyLinked(path.join(this.#store, name), target)
  }

  /**
   * Copies packages and longstack's dependencies to a node_modules directory.
   * @param {string} modules
   * @param {string[]} names
   */
  putModules (modules, names) {
    const topLevel = [...this.#dependencies.keys()].filter((name) => !name.includes('node_modules'))
    for (const name of [...topLevel, PLATFORM, ...names]) this.put(name, path.join(modules, name))
  }

  /**
   * Adds a package to pnpm's store, with its dependencies beside it.
   * @param {string} modules
   * @param {string} name
   */
  putPnpm (modules, name) {
    const packages = new Map(this.#dependencies)
    packages.set('longstack', { name: 'longstack', version: '0.1.0', needs: [...this.#dependencies.keys(), PLATFORM] })
    packages.set(PLATFORM, { name: PLATFORM, version: '0.1.0', needs: [] })
    packages.set('first', { name: 'first', version: '1.0.0', needs: ['second'] })
    packages.set('second', { name: 'second', version: '2.0.0', needs: [] })
    packages.set('third', { name: 'third', version: '3.0.0', needs: [] })
    /** @param {string} directory @returns {string} its place in the store */
    const add = (directory) => {
      const { name, version, needs } = /** @type {Package} */ (packages.get(directory))
      const home = path.join(modules, '.pnpm', `${name}@${version}`, 'node_modules', name)
      if (fs.existsSync(home)) return home
      this.put(directory, home)
      for (const need of needs.filter((one) => directory !== 'longstack' || !one.includes('node_modules'))) {
        link(add(need), path.join(path.dirname(home), path.basename(need)))
      }
      return home
    }
    link(add(name), path.join(modules, name))
  }

  /**
   * Adds Yarn's files in Plug'n'Play mode.
   * @param {string} directory
   * @param {boolean} isZipped longstack stays in its archive, which Yarn would unpack by default
   */
  putYarn (directory, isZipped) {
    const project = path.join(this.#directory, isZipped ? 'yarn-zipped' : 'yarn')
    if (!fs.existsSync(project)) this.#installYarn(project, isZipped)
    copyLinked(project, directory)
  }

  /** @param {string} project @param {boolean} isZipped */
  #installYarn (project, isZipped) {
    /** @param {string[]} names directories in node_modules */
    const places = (names) => Object.fromEntries(names.map((name) =>
      [name.replace('/node_modules/', '/'), `file:${path.join(this.#store, name)}`]))
    const manifest = {
      name: 'project',
      private: true,
      dependencies: places(['longstack', 'first', 'third']),
      resolutions: places([...this.#dependencies.keys(), 'second', PLATFORM]),
      dependenciesMeta: isZipped ? { longstack: { unplugged: false } } : undefined
    }
    write(project, { 'package.json': JSON.stringify(manifest), 'yarn.lock': '', '.yarnrc.yml': YARN_SETTINGS })
    const yarn = require.resolve('@yarnpkg/cli-dist/bin/yarn.js')
    const env = { ...process.env, YARN_GLOBAL_FOLDER: path.join(this.#directory, 'yarn-global'), NODE_OPTIONS: '' }
    const args = [yarn, 'install', '--no-immutable']
    const { status, stdout, error } = spawnSync(process.execPath, args, { cwd: project, env, encoding: 'utf8', timeout: YARN_MS })
    if (status !== 0) throw new Error(`yarn install failed: ${error?.message ?? stdout}`)
  }

  /** Removes write permission. @param {string} directory */
  protect (directory) {
    this.#readOnly.push(directory)
    execFileSync('chmod', ['-R', 'a-w', directory])
  }

  remove () {
    for (const directory of this.#readOnly) execFileSync('chmod', ['-R', 'u+w', directory])
    fs.rmSync(this.#directory, { recursive: true, force: true })
  }
}

/** @type {Record<string, (trees: Layouts, directory: string) => Partial<Project>>} */
const layouts = {
  plain (trees, directory) {
    trees.putModules(path.join(directory, 'node_modules'), OWN_PACKAGES)
    trees.put('program', directory)
    return {}
  },

  bin (trees, directory) {
    const modules = path.join(directory, 'node_modules')
    trees.putModules(modules, OWN_PACKAGES)
    trees.put('program', path.join(modules, 'tool'))
    const main = path.join(modules, '.bin')
    for (const name of ['main.cjs', 'main.mjs']) link(path.join(modules, 'tool', name), path.join(main, name))
    return { main }
  },

  pnpm (trees, directory) {
    for (const name of ['longstack', 'first', 'third']) trees.putPnpm(path.join(directory, 'node_modules'), name)
    trees.put('program', directory)
    return {}
  },

  'pnpm, preserved links': (trees, directory) => ({
    ...layouts.pnpm(trees, directory),
    flags: ['--preserve-symlinks', '--preserve-symlinks-main']
  }),

  workspace (trees, directory) {
    trees.putModules(path.join(directory, 'node_modules'), ['longstack', 'second', 'third'])
    return putWorkspace(trees, directory)
  },

  'workspace, not hoisted' (trees, directory) {
    const { cwd, main } = putWorkspace(trees, directory)
    trees.putModules(path.join(directory, 'node_modules'), ['second', 'third'])
    trees.put('longstack', path.join(cwd, 'node_modules', 'longstack'))
    return { cwd, main, register: path.join(cwd, 'node_modules', REGISTER) }
  },

  'workspace, linked' (trees, directory) {
    trees.putModules(path.join(directory, 'node_modules'), ['second', 'third'])
    trees.put('longstack', path.join(directory, 'packages', 'longstack'))
    link(path.join(directory, 'packages', 'longstack'), path.join(directory, 'node_modules', 'longstack'))
    return putWorkspace(trees, directory)
  },

  pnp: (trees, directory) => putPnp(trees, directory, false),

  'pnp, zipped': (trees, directory) => putPnp(trees, directory, true),

  'read-only' (trees, directory) {
    layouts.plain(trees, directory)
    trees.protect(path.dirname(directory))
    return { user: readOnlyUser() }
  }
}

/** Makes the program and one of its packages workspaces. @param {Layouts} trees @param {string} directory */
function putWorkspace (trees, directory) {
  const app = path.join(directory, 'packages', 'app')
  trees.put('program', app)
  trees.put('first', path.join(directory, 'packages', 'first'))
  for (const name of ['app', 'first']) {
    link(path.join(directory, 'packages', name), path.join(directory, 'node_modules', name))
  }
  return { cwd: app, main: app }
}

/** @param {Layouts} trees @param {string} directory @param {boolean} isZipped */
function putPnp (trees, directory, isZipped) {
  trees.putYarn(directory, isZipped)
  trees.put('program', directory)
  const hook = path.join(directory, '.pnp.cjs')
  const loader = pathToFileURL(path.join(directory, '.pnp.loader.mjs')).href
  const args = ['-r', hook, '-p', "require.resolve('longstack/register')"]
  const register = execFileSync(process.execPath, args, { cwd: directory, encoding: 'utf8' }).slice(0, -1)
  return { register, preloads: ['--require', hook, '--experimental-loader', loader] }
}

/** Returns a user who cannot write read-only files: root can. */
const readOnlyUser = () => process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}

/** @returns {string | undefined} reason why there can be no read-only tree */
function noReadOnly () {
  const { status, error } = spawnSync(process.execPath, ['-e', '0'], { ...readOnlyUser(), cwd: '/' })
  return status === 0 ? undefined : `not tried: nobody cannot run ${process.execPath}: ${error?.message ?? status}`
}

module.exports = { Layouts, layouts, noReadOnly }
