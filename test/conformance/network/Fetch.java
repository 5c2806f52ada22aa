import java.io.FileInputStream;
import java.net.URI;
import java.net.http.*;
import java.security.KeyStore;
import java.security.cert.*;
import javax.net.ssl.*;

/** Fetches each URL with Java's own client and prints the result or the error, and the time. */
public class Fetch {
    public static void main(String[] urls) throws Exception {
        // Java has its own list of authorities. The test's authority is in the system's list.
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (var file = new FileInputStream("ca.pem")) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        var client = HttpClient.newBuilder().sslContext(context).build();
        for (String url : urls) {
            long began = System.nanoTime();
            String said;
            try {
                var answer = client.send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString());
                said = answer.statusCode() + " " + answer.headers().firstValue("x-pen-denied").orElse("") + " " + answer.body().lines().findFirst().orElse("");
            } catch (Exception e) {
                said = e.toString();
            }
            System.out.println((System.nanoTime() - began) / 1000000 + " " + said);
        }
    }
}
