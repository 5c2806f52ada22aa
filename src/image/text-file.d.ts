/** A text file that is part of the program. */
declare module '*/Dockerfile' {
  const text: string
  export default text
}
