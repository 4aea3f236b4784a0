'use strict'

// The directories that npm packs: the main package, with the files listed in the checkout's `files`, and one
// for each platform with binaries in native/prebuilds/.

const fs = require('node:fs')
const path = require('node:path')
const { ABIS, ownDirectory } = require('../lib/platform')
const { isFresh } = require('../native/compile')
const { targets } = require('../native/targets')
const { BUNDLE, LATER, idOf, isCodeOf, withSizes } = require('../lib/start/build')
const { asPublished, rename, withoutComments, withoutCStyleComments } = require('./texts')
const { npm } = require('./npm')

const root = path.join(__dirname, '..')
const LICENCE = 'LICENSE'
/** Steps from `exports` to declarations that people read; those further away are packed without comments. */
const PUBLIC_STEPS = 2

/** Fields of the checkout's package.json for its developers. */
const LEFT_OUT = ['private', 'files', 'scripts', 'devDependencies']

/**
 * @typedef {{ name: string, version: string }} Identity
 * @typedef {object} Package
 * @property {string} name
 * @property {string} directory that npm packs
 */

/** @returns {string[]} names of the platforms with binaries */
function presentPlatforms () {
  return Object.keys(targets).filter((target) => binariesOf(target).some((file) => fs.existsSync(file)))
}

/** @param {string} target @returns {string[]} files, which may be missing */
function binariesOf (target) {
  return Object.values(ABIS).map((abi) => path.join(ownDirectory(target), `longstack.abi${abi}.node`))
}

/** @returns {string[]} sentences on binaries that are missing, or older than their sources */
function findFaults () {
  return Object.keys(targets).flatMap((target) => {
    const isThere = (/** @type {string} */ file) => fs.existsSync(file)
    const missing = binariesOf(target).filter((file) => !isThere(file))
    const stale = binariesOf(target).filter((file) => isThere(file) && !isFresh(file))
    return [
      ...sentenceOn(target, missing, 'missing'), ...sentenceOn(target, stale, 'older than their sources')
    ]
  })
}

/** @param {string} target @param {string[]} files @param {string} fault @returns {string[]} */
function sentenceOn (target, files, fault) {
  if (files.length === 0) return []
  return [`Binaries for ${target} are ${fault}: ${files.map((file) => path.basename(file)).join(', ')}.`]
}

/**
 * Writes the packages.
 * @param {string} out directory for their directories
 * @param {Identity} identity
 * @returns {Package[]} the main package comes last, since its dependencies are published first
 */
function writePackages (out, identity) {
  const later = path.join(ownDirectory(), LATER)
  const platforms = presentPlatforms()
  const main = { name: identity.name, directory: path.join(out, 'main') }
  writeMain(main.directory, identity, platforms)
  const sizeOf = (/** @type {string} */ name) => fs.statSync(path.join(main.directory, 'lib', name)).size
  const laterText = withSizes(fs.readFileSync(later, 'latin1'), sizeOf)
  const others = platforms.map((target) => {
    const platform = { name: `${identity.name}-${target}`, directory: path.join(out, target) }
    writePlatform(platform, target, identity.version, laterText)
    return platform
  })
  return [...others, main]
}

/** @param {string} directory @param {Identity} identity @param {string[]} platforms */
function writeMain (directory, { name, version }, platforms) {
  const manifest = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'))
  const entries = Object.keys(manifest.exports)
  const steps = reachedTypes(manifest)
  for (const file of listFiles(steps)) {
    const content = fs.readFileSync(path.join(root, file))
    const isInner = (steps.get(file) ?? 0) > PUBLIC_STEPS
    const text = isInner ? withoutCStyleComments(content.toString()) : convert(file, content, name, entries)
    write(path.join(directory, file), text)
  }
  const bundle = path.join(directory, 'lib', 'start', BUNDLE)
  const sizeOf = (/** @type {string} */ file) => fs.statSync(path.join(directory, 'lib', file)).size
  write(bundle, Buffer.from(withSizes(fs.readFileSync(bundle, 'latin1'), sizeOf), 'latin1'))
  const kept = Object.entries(manifest).filter(([key]) => !LEFT_OUT.includes(key))
  writeManifest(directory, {
    ...Object.fromEntries(kept),
    name,
    version,
    ...repository(manifest),
    scripts: { build: 'node native/build.js && node lib/start/build.js' },
    optionalDependencies: Object.fromEntries(platforms.map((target) => [`${name}-${target}`, version]))
  })
}

/**
 * @param {Map<string, number>} reached
 * @returns {string[]} files that npm would pack, without unreachable declarations
 */
function listFiles (reached) {
  const [{ files }] = JSON.parse(npm(['pack', '--dry-run', '--json', '--ignore-scripts'], root))
  return files.map((/** @type {{ path: string }} */ file) => file.path)
    .filter((/** @type {string} */ file) => file !== 'package.json')
    .filter((/** @type {string} */ file) => !file.startsWith('types/') || reached.has(file))
}

/**
 * @param {any} manifest
 * @returns {Map<string, number>} declarations reachable from those in `exports`, with the number of steps
 */
function reachedTypes (manifest) {
  const first = JSON.stringify(manifest.exports).match(/(?<=")\.\/types\/[^"]+/g) ?? []
  const reached = new Map(first.map((file) => [path.posix.normalize(file), 0]))
  for (const [file, steps] of reached) { // grows during the loop
    const text = fs.readFileSync(path.join(root, file), 'utf8')
    for (const [, id] of text.matchAll(/(?:\bfrom |\b(?:import|require)\()['"](\.[^'"]+)['"]/g)) {
      const base = path.posix.join(path.posix.dirname(file), id)
      const names = [`${base}.d.ts`, `${base}/index.d.ts`, base.replace(/\.(m?)js$/, '.d.$1ts')]
      const found = names.find((name) => fs.existsSync(path.join(root, name)))
      if (found === undefined) throw new Error(`${file} imports ${id}, which is not there`)
      if (!reached.has(found)) reached.set(found, steps + 1)
    }
  }
  return reached
}

/** @param {string} file @param {Buffer} content @param {string} name @param {string[]} entries */
function convert (file, content, name, entries) {
  const text = content.toString()
  const isCode = /^(lib|report|native)\/.*\.m?js$|^index\.js$/.test(file)
  if (isCode) return withoutComments(text, file.endsWith('.mjs'))
  if (/\.(cc|h)$/.test(file)) return withoutCStyleComments(text)
  if (file.endsWith('.md')) return rename(asPublished(text), name, entries)
  return /^(examples|types)\//.test(file) ? rename(text, name, entries) : content
}

/**
 * Returns the `repository` field. For a version with provenance, npm checks it against the origin.
 * @param {any} manifest
 */
function repository ({ repository }) {
  const { GITHUB_REPOSITORY, GITHUB_SERVER_URL = 'https://github.com' } = process.env
  if (repository !== undefined || GITHUB_REPOSITORY === undefined) return {}
  return { repository: { type: 'git', url: `git+${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}.git` } }
}

/** @param {Package} platform @param {string} target @param {string} version @param {string} later */
function writePlatform ({ name, directory }, target, version, later) {
  const [, system, libc, cpu] = /** @type {RegExpExecArray} */ (/^([a-z]+?)(musl)?-(\w+)$/.exec(target))
  const id = idOf(later)
  const source = ownDirectory(target)
  const names = fs.readdirSync(source)
    .filter((file) => file.endsWith('.node') || isCodeOf(path.join(source, file), id))
  for (const file of names) write(path.join(directory, file), fs.readFileSync(path.join(source, file)))
  write(path.join(directory, LATER), Buffer.from(later, 'latin1'))
  write(path.join(directory, LICENCE), fs.readFileSync(path.join(root, LICENCE)))
  const mainName = name.slice(0, -target.length - 1)
  write(path.join(directory, 'README.md'), `# ${name}\n\nThe native engine of longstack for ${target}, and ` +
    `code compiled for it. Installing \`${mainName}\`\nbrings it where it fits.\n`)
  const { license, engines } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'))
  writeManifest(directory, {
    name,
    version,
    description: `The native engine of longstack for ${target}`,
    license,
    ...repository({}),
    engines,
    os: [system],
    cpu: [cpu],
    ...(system === 'linux' ? { libc: [libc ?? 'glibc'] } : {}),
    preferUnplugged: true
  })
}

/** @param {string} directory @param {object} manifest */
function writeManifest (directory, manifest) {
  write(path.join(directory, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
}

/** @param {string} file @param {string | Buffer} content */
function write (file, content) {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, content)
}

module.exports = { findFaults, presentPlatforms, writePackages }
