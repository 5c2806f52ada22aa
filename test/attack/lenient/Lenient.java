import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

/** Answers with the host and the target that Java's own server reads from a request. */
class Lenient {
    public static void main(String[] arguments) throws Exception {
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(java.util.concurrent.Executors.newCachedThreadPool());
        server.createContext("/", exchange -> {
            exchange.getRequestBody().readAllBytes();
            var seen = "seen=" + exchange.getRequestHeaders().getFirst("Host") + " uri=" + exchange.getRequestURI();
            var body = seen.getBytes("ISO-8859-1");
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
        System.out.println("port=" + server.getAddress().getPort());
    }
}
