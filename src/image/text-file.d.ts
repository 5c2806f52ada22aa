/** A file that is a part of the program, as its text. */
declare module '*/Dockerfile' {
  const text: string
  export default text
}
