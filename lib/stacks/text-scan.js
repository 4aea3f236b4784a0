'use strict'

// Scans names, paths and stacks character by character. The path of `.stack` uses no regular expression: V8
// of Node 20 and 22 aborts the process if it compiles one with little stack left ("RegExpCompiler Allocation
// failed", V8's src/regexp/regexp-compiler-tonode.cc), and recompiles those that are hot or that a collection
// dropped.

const AT = '    at ' // before a frame
const HOP = '  \u2500\u2500 ' // before the label of a hop
/** Replaces a line feed in a path, since each frame is one line: no path contains it. */
const LINE_FEED = '\0'

/** Whether a character is one of a-z A-Z 0-9 _ $. @param {number} code of a UTF-16 unit */
function isNameCode (code) {
  const isLetter = (code >= 97 && code <= 122) || (code >= 65 && code <= 90)
  return isLetter || isDigitCode(code) || code === 95 || code === 36
}

/** @param {number} code @returns {boolean} */
function isDigitCode (code) {
  return code >= 48 && code <= 57
}

/** @param {string} text @param {string} prefix @returns {string} the text without that prefix */
function withoutPrefix (text, prefix) {
  return text.startsWith(prefix) ? text.slice(prefix.length) : text
}

/** Returns the text after the last such character, or all. @param {string} text @param {string} character */
function afterLast (text, character) {
  return text.slice(text.lastIndexOf(character) + 1)
}

/** Returns the file name of a path with either kind of slash. @param {string} file */
function baseName (file) {
  return file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1)
}

/** "Timeout.warmUp [as _onTimeout]" -> "Timeout.warmUp". @param {string} name */
function withoutAlias (name) {
  const start = name.endsWith(']') ? name.indexOf(' [as ', name.lastIndexOf(']', name.length - 2) + 1) : -1
  return start === -1 ? name : name.slice(0, start)
}

/** Returns the names in a path with either kind of slash. @param {string} file */
const pathNames = (file) => file.replaceAll('\\', '/').split('/')

/**
 * Returns the names in a path below the innermost node_modules directory.
 * @param {string} file
 * @returns {string[] | undefined} undefined if there is no such directory
 */
function namesInModules (file) {
  const names = pathNames(file)
  const index = names.lastIndexOf('node_modules', names.length - 2)
  return index > 0 ? names.slice(index + 1) : undefined
}

/**
 * Returns the frame lines in the text of an error's stack, in the format of joinFrames.
 * @param {string} text
 * @param {boolean} isWithAwaiting include the functions known to V8 to await the running one
 */
function frameLines (text, isWithAwaiting) {
  const lines = []
  /** the last frame, while the next line may continue its path @type {string | undefined} */
  let last
  for (const line of text.split('\n')) {
    if (line.startsWith(AT)) {
      const isSkipped = !isWithAwaiting && line.startsWith('async ', AT.length)
      last = isSkipped ? undefined : line.slice(AT.length)
      if (last !== undefined) lines.push(last)
    } else if (last !== undefined) {
      last = isWhole(last) ? undefined : last + LINE_FEED + line
      if (last === undefined || !endsWithPosition(line)) continue
      lines[lines.length - 1] = last
      last = undefined
    }
  }
  return lines.join('\n')
}

/** Whether a line ends like a complete frame. @param {string} line */
function isWhole (line) {
  return line.endsWith(')') || line.endsWith('>') || endsWithPosition(line)
}

/** @param {string} line */
function endsWithPosition (line) {
  const columnStart = numberStart(line, line.endsWith(')') ? line.length - 1 : line.length)
  return columnStart !== -1 && numberStart(line, columnStart - 1) !== -1
}

/** Returns the text of a stack that `Stack` reads. @param {string[]} frames without "    at " */
function joinFrames (frames) {
  return frames.map((frame) => frame.includes('\n') ? frame.replaceAll('\n', LINE_FEED) : frame).join('\n')
}

/** @param {string} text of joinFrames @returns {string[]} */
function splitFrames (text) {
  const frames = text.split('\n')
  return text.includes(LINE_FEED) ? frames.map((frame) => frame.replaceAll(LINE_FEED, '\n')) : frames
}

/**
 * Returns the start of the number before `end` that follows a colon, or -1.
 * @param {string} text
 * @param {number} end
 */
function numberStart (text, end) {
  let start = end
  while (start > 0 && isDigitCode(text.charCodeAt(start - 1))) start--
  return start < end && start > 0 && text[start - 1] === ':' ? start : -1
}

/** Whether the text of a stack has hops. @param {string} stack */
function hasHops (stack) {
  return stack.includes(`\n${HOP}`)
}

module.exports = {
  AT,
  HOP,
  hasHops,
  isNameCode,
  isDigitCode,
  withoutPrefix,
  afterLast,
  baseName,
  withoutAlias,
  pathNames,
  namesInModules,
  frameLines,
  joinFrames,
  splitFrames,
  numberStart
}
